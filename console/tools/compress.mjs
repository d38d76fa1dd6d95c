// Beside each built file of some size a .gz and a .br, so that the server only reads; then a table of what there is.
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const folder = fileURLToPath(new URL("../node_modules/.console/", import.meta.url));
const rows = [];
for (const entry of readdirSync(folder, { recursive: true })) {
  const path = join(folder, entry);
  if (!/\.(js|css|svg|txt|wasm)$/.test(path) || !statSync(path).isFile()) continue;
  const bytes = readFileSync(path);
  const gzip = gzipSync(bytes, { level: 9 });
  const quality = { [constants.BROTLI_PARAM_QUALITY]: 10, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  const brotli = brotliCompressSync(bytes, { params: quality });
  if (!entry.endsWith(".txt")) rows.push([entry, bytes.length, gzip.length, brotli.length]);
  if (bytes.length > 1000) {
    writeFileSync(`${path}.gz`, gzip);
    writeFileSync(`${path}.br`, brotli);
  }
}
rows.sort((a, b) => b[2] - a[2]);
const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} kB`.padStart(10);
if (process.argv.includes("--table")) {
  for (const [name, ...sizes] of rows) console.log(sizes.map(kilobytes).join(""), "", name);
}
const total = rows.filter(([name]) => !name.includes("viewer")).reduce((sum, row) => sum + row[2], 0);
console.log(`console: ${rows.length} files, ${(total / 1000).toFixed(0)} kB gzipped without the 3D viewer`);
