// Counts tokens with a vocabulary that lies inside the package: reads a JSON array of texts, writes an array of counts.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
const require = createRequire(process.argv[2] + "/");
const { encode } = require("gpt-tokenizer/encoding/o200k_base");
const texts = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(texts.map((text) => encode(text, { allowedSpecial: "all" }).length)));
