// Only the styles of the components in use are built in: a component whose styles were forgotten is a mistake found here.
import { readFileSync } from "node:fs";

const ALL = new URL("../node_modules/@mantine/core/styles.css", import.meta.url);

/** A plugin that looks for names of styles in the scripts, and for them in the style sheets. */
export function styles() {
  return {
    name: "styles",
    apply: "build",
    generateBundle(_options, bundle) {
      const files = Object.values(bundle);
      const scripts = files.map((file) => file.code ?? "").join("");
      const sheets = files.map((file) => (file.fileName.endsWith(".css") ? String(file.source) : "")).join("");
      const known = readFileSync(ALL, "utf8");
      const named = new Set(scripts.match(/\bm_[0-9a-f]{6,10}\b/g));
      const missing = [...named].filter((name) => known.includes(`.${name}`) && !sheets.includes(`.${name}`));
      if (missing.length) this.error(`src/styles.ts lacks the styles that have ${missing.join(", ")}`);
    },
  };
}
