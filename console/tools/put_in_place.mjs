// Bring what was built to where a server may be reading it: the page itself comes last and at once, what is old goes after.
import { copyFileSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const PAGE = "index.html";
const built = fileURLToPath(new URL("../node_modules/.console/", import.meta.url));
const place = fileURLToPath(new URL("../../src/penstock/console/", import.meta.url));

const filesOf = (folder) =>
  readdirSync(folder, { recursive: true }).filter((name) => statSync(join(folder, name)).isFile());

function put(name) {
  const target = join(place, name);
  mkdirSync(dirname(target), { recursive: true });
  copyFileSync(join(built, name), `${target}.new`);
  renameSync(`${target}.new`, target);
}

mkdirSync(place, { recursive: true });
const wanted = filesOf(built);
for (const name of wanted.filter((each) => each !== PAGE)) put(name);
put(PAGE);
const isWanted = new Set(wanted);
for (const name of filesOf(place)) if (!isWanted.has(name)) rmSync(join(place, name));
rmSync(built, { recursive: true });
