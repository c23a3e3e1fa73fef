// The same echo on the TypeScript SDK over stdio: the limit our cheapest tool call is compared with.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const from = createRequire(`${process.argv[2]}/node_modules/`);
const load = (name) => import(pathToFileURL(from.resolve(`@modelcontextprotocol/sdk/${name}`)).href);
const { StdioServerTransport } = await load("server/stdio.js");
const { echoServer } = await import("./echo_server.mjs");

await (await echoServer(load)).connect(new StdioServerTransport());
