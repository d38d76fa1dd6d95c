// Runs the glTF validator over GLB files and prints, per file, how many errors, warnings, infos and hints it found.
import { readFile } from "node:fs/promises";

import { validateBytes } from "gltf-validator";

const found = {};
for (const path of process.argv.slice(2)) {
  const { issues } = await validateBytes(new Uint8Array(await readFile(path)));
  const { numErrors, numWarnings, numInfos, numHints, messages } = issues;
  found[path] = { errors: numErrors, warnings: numWarnings, infos: numInfos, hints: numHints, messages };
}
console.log(JSON.stringify(found));
