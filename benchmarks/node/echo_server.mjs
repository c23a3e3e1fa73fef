// A low-level server with one tool that answers what it was given, as text and as structured content.
export async function echoServer(load) {
  const { Server } = await load("server/index.js");
  const { CallToolRequestSchema, ListToolsRequestSchema } = await load("types.js");
  const server = new Server({ name: "echo", version: "1" }, { capabilities: { tools: {} } });
  const tool = { name: "echo", description: "Echo", inputSchema: { type: "object", properties: { text: { type: "string" } } } };
  server.setRequestHandler(ListToolsRequestSchema, async () => ({ tools: [tool] }));
  server.setRequestHandler(CallToolRequestSchema, async (request) => ({
    content: [{ type: "text", text: JSON.stringify(request.params.arguments) }],
    structuredContent: request.params.arguments,
    isError: false,
  }));
  return server;
}
