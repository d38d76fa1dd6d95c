import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const server = process.env.PENSTOCK_BASE_URL ?? "http://127.0.0.1:8787";

/** The 3D viewer writes a style element without a nonce, which the page's policy refuses; it is given ours. */
function nonceForViewer(): Plugin {
  return {
    name: "nonce-for-viewer",
    transform(code, id) {
      if (!id.includes("model-viewer/lib/template.js")) return null;
      if (!code.includes("html `\n<style>")) this.error("the 3D viewer's template has changed: look at it again");
      return { code: code.replace("<style>", '<style nonce="${window.penstockNonce}">'), map: null };
    },
  };
}

export default defineConfig({
  base: "/console/",
  plugins: [react(), nonceForViewer()],
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
          if (/node_modules\/(@mantine|@floating-ui|react-number-format|react-remove-scroll)/.test(id))
            return "mantine";
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
