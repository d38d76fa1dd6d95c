// The build contains code of others: beside it go their licences, all of which must be permissive.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const PERMISSIVE = /^\(?(MIT|ISC|0BSD|Unlicense|Apache-2\.0|BSD-[23]-Clause|CC0-1\.0|Zlib)( (OR|AND) .*)?\)?$/;

/** What three.js brings along from others, and tools/decoders.mjs takes. */
const DECODERS = `Draco (Google) and Basis Universal (Binomial), as three brings them along, Apache-2.0

The text of the licence is that of @google/model-viewer.
`;

/** A plugin that writes licences.txt. */
export function licences() {
  return {
    name: "licences",
    apply: "build",
    generateBundle(_options, bundle) {
      const folders = new Set();
      for (const chunk of Object.values(bundle)) {
        for (const id of Object.keys(chunk.modules ?? {})) {
          const found = /^\0?(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id);
          if (found) folders.add(found[1]);
        }
      }
      const texts = [...folders].sort().map((folder) => describe(folder, (told) => this.error(told)));
      texts.push(DECODERS);
      this.emitFile({ type: "asset", fileName: "licences.txt", source: texts.join(`\n${"-".repeat(80)}\n\n`) });
    },
  };
}

function describe(folder, refuse) {
  const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  if (!PERMISSIVE.test(about.license ?? ""))
    refuse(`${about.name} is under ${about.license}: not known to be permissive`);
  const file = readdirSync(folder).find((name) => /^licen[cs]e(\.(md|txt))?$/i.test(name));
  const text = file && existsSync(join(folder, file)) ? readFileSync(join(folder, file), "utf8").trim() : "";
  return `${about.name} ${about.version}, ${about.license}\n\n${text}\n`;
}
