// The same echo on the TypeScript SDK over Streamable HTTP, with sessions, on a free port that is printed.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const from = createRequire(`${process.argv[2]}/node_modules/`);
const load = (name) => import(pathToFileURL(from.resolve(`@modelcontextprotocol/sdk/${name}`)).href);
const { StreamableHTTPServerTransport } = await load("server/streamableHttp.js");
const { echoServer } = await import("./echo_server.mjs");
const sessions = new Map();

async function transportOf(request) {
  const known = sessions.get(request.headers["mcp-session-id"]);
  if (known) return known;
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    enableJsonResponse: process.argv[3] === "json",
    onsessioninitialized: (id) => sessions.set(id, transport),
  });
  await (await echoServer(load)).connect(transport);
  return transport;
}

const server = createServer(async (request, response) => (await transportOf(request)).handleRequest(request, response));
server.keepAliveTimeout = 60000;
server.listen(0, "127.0.0.1", () => console.error(`serving http://127.0.0.1:${server.address().port}/mcp`));
