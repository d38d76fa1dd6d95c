// The decoders of compressed 3D models as workers of our own. three.js would put them together from texts in the browser,
// which the page's policy forbids; here they become files, which are fetched when a model needs them.
import { readFileSync } from "node:fs";
import { KTX2Loader } from "three/examples/jsm/loaders/KTX2Loader.js";

const NAME = "virtual:decoders";
const FOLDER = new URL("../node_modules/three/examples/jsm/", import.meta.url);
const read = (path, encoding) => readFileSync(new URL(path, FOLDER), encoding);
const bodyOf = (code) => code.slice(code.indexOf("{") + 1, code.lastIndexOf("}"));

function dracoWorker() {
  const [, code] = read("loaders/DRACOLoader.js", "utf8").split("function DRACOWorker()");
  return `${read("libs/draco/gltf/draco_wasm_wrapper.js", "utf8")}\n${bodyOf(code.split("\nexport {")[0])}`;
}

function basisWorker() {
  const constants = ["EngineFormat", "EngineType", "TranscoderFormat", "BasisFormat"].map(
    (name) => `const _${name} = ${JSON.stringify(KTX2Loader[name])};`,
  );
  const wrapper = read("libs/basis/basis_transcoder.js", "utf8");
  return [...constants, wrapper, bodyOf(KTX2Loader.BasisWorker.toString())].join("\n");
}

const FILES = {
  draco: ["viewer_draco.js", dracoWorker],
  dracoBinary: ["viewer_draco.wasm", () => read("libs/draco/gltf/draco_decoder.wasm")],
  basis: ["viewer_basis.js", basisWorker],
  basisBinary: ["viewer_basis.wasm", () => read("libs/basis/basis_transcoder.wasm")],
};

/** A plugin that writes them, and tells their addresses to whoever imports "virtual:decoders". */
export function decoders() {
  const entries = Object.entries(FILES);
  let isServing = false;
  return {
    name: "decoders",
    configResolved: ({ command }) => {
      isServing = command === "serve";
    },
    configureServer({ middlewares }) {
      for (const [, [file, make]] of entries) {
        middlewares.use(`/console/${file}`, (_request, response) => {
          response.setHeader("content-type", file.endsWith(".js") ? "text/javascript" : "application/wasm");
          response.end(make());
        });
      }
    },
    resolveId: (source) => (source === NAME ? `\0${NAME}` : null),
    load(id) {
      if (id !== `\0${NAME}`) return null;
      const address = ([file, make]) =>
        isServing
          ? `"/console/${file}"`
          : `import.meta.ROLLUP_FILE_URL_${this.emitFile({ type: "asset", name: file, source: make() })}`;
      return entries.map(([name, file]) => `export const ${name} = ${address(file)};`).join("\n");
    },
  };
}
