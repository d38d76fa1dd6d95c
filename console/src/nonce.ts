/** The page's nonce for styles, which the server wrote into it. Without it the policy refuses every style element. */
import { setNonce } from "get-nonce";

declare global {
  interface Window {
    /** Read by the 3D viewer's template, see vite.config.ts. */
    penstockNonce: string;
  }
}

export const nonce = document.querySelector<HTMLMetaElement>('meta[name="nonce"]')?.content ?? "";
window.penstockNonce = nonce;
setNonce(nonce);
