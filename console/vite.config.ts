import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";
import { decoders } from "./tools/decoders.mjs";
import { licences } from "./tools/licences.mjs";
import { styles } from "./tools/styles.mjs";

const server = process.env.PENSTOCK_BASE_URL ?? "http://127.0.0.1:8787";
const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const decodersFile = here("src/parts/viewer_decoders.ts");
const CHANGES = [
  ["template.js", "\n<style>", '\n<style nonce="${window.penstockNonce}">'],
  ["three-components/CachingGLTFLoader.js", "let meshoptDecoder;", "let meshoptDecoder = MeshoptDecoder;"],
] as const;

/** The 3D viewer under the page's policy: its style element is given our nonce, its decoders are this server's. */
function tameViewer(): Plugin {
  return {
    name: "tame-viewer",
    enforce: "pre",
    resolveId(source, importer) {
      if (!importer?.includes("model-viewer/")) return null;
      return /three\/examples\/jsm\/.*(DRACOLoader|KTX2Loader|meshopt_decoder\.module)/.test(source)
        ? decodersFile
        : null;
    },
    transform(code, id) {
      for (const [file, told, meant] of CHANGES) {
        if (!id.includes(`model-viewer/lib/${file}`)) continue;
        if (!code.includes(told)) this.error(`the 3D viewer's ${file} has changed: look at it again`);
        return { code: code.replace(told, meant), map: null };
      }
      return null;
    },
  };
}

export default defineConfig({
  base: "/console/",
  // What only the form library's own tests ask for; it compiles schemas, which the page's policy forbids.
  resolve: { alias: { "@rjsf/validator-ajv8": here("src/pages/playground/form_validator.ts") } },
  plugins: [react(), tameViewer(), decoders(), styles(), licences()],
  build: {
    // Aside; tools/put_in_place.mjs brings it to where a server may be reading.
    outDir: "node_modules/.console",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1200,
    rollupOptions: {
      // The second is the script of public share pages, which the server names in them.
      input: { index: here("index.html"), share: here("src/share/share.ts") },
      output: {
        entryFileNames: ({ name }) => (name === "share" ? "share.js" : "assets/[name]-[hash].js"),
        manualChunks(id) {
          if (/node_modules\/(react|react-dom|scheduler|wouter|regexparam)\//.test(id)) return "react";
          return undefined;
        },
      },
    },
  },
  server: {
    port: 5173,
    proxy: Object.fromEntries(
      ["/api", "/llm", "/model", "/admin", "/docs", "/openapi.json", "/share"].map((path) => [path, server]),
    ),
  },
});
