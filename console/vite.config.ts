import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";
import { licences } from "./tools/licences.mjs";

const server = process.env.PENSTOCK_BASE_URL ?? "http://127.0.0.1:8787";
const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const decoders = here("src/parts/viewer_decoders.ts");

/** The 3D viewer under the page's policy: its style element is given our nonce, its decoders stay out. */
function tameViewer(): Plugin {
  return {
    name: "tame-viewer",
    enforce: "pre",
    resolveId(source) {
      return /three\/examples\/jsm\/.*(DRACOLoader|KTX2Loader|meshopt_decoder\.module)/.test(source) ? decoders : null;
    },
    transform(code, id) {
      if (!id.includes("model-viewer/lib/template.js")) return null;
      if (!code.includes("\n<style>")) this.error("the 3D viewer's template has changed: look at it again");
      return { code: code.replace("<style>", '<style nonce="${window.penstockNonce}">'), map: null };
    },
  };
}

export default defineConfig({
  base: "/console/",
  // What only the form library's own tests ask for; it compiles schemas, which the page's policy forbids.
  resolve: { alias: { "@rjsf/validator-ajv8": here("src/pages/playground/form_validator.ts") } },
  plugins: [react(), tameViewer(), licences()],
  build: {
    outDir: "../src/penstock/console",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1200,
    rollupOptions: {
      output: {
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
      ["/api", "/llm", "/model", "/admin", "/docs", "/openapi.json"].map((path) => [path, server]),
    ),
  },
});
