// Write src/api/schema.d.ts from a server's OpenAPI document: node tools/types.mjs [address]
import { writeFileSync } from "node:fs";
import openapi, { astToString } from "openapi-typescript";

const address = process.argv[2] ?? "http://127.0.0.1:8787";
const document = await (await fetch(`${address}/openapi.json`)).json();
const schemas = Object.entries(document.components.schemas).filter(
  ([name]) => !/Params|Input$|^FrameImage$|^StoredObject$|^Script$|^GenerationRequest$/.test(name),
);
const kept = {
  openapi: document.openapi,
  info: document.info,
  paths: {},
  components: { schemas: Object.fromEntries(schemas) },
};
const target = new URL("../src/api/schema.d.ts", import.meta.url);
writeFileSync(target, astToString(await openapi(kept, { defaultNonNullable: true })));
