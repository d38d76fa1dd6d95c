/** The browser of a session, in words. */
import type { SessionRecord } from "../../api/shapes";

const KNOWN: [RegExp, string][] = [
  [/Edg\//, "Edge"],
  [/Firefox\//, "Firefox"],
  [/Chrom(e|ium)\/|HeadlessChrome\//, "Chrome"],
  [/Safari\//, "Safari"],
];
const SYSTEMS: [RegExp, string][] = [
  [/Windows/, "Windows"],
  [/Android/, "Android"],
  [/iPhone|iPad/, "iOS"],
  [/Mac OS/, "macOS"],
  [/Linux/, "Linux"],
];

/** `Firefox on Linux`, by the provider, from what a browser says of itself. */
export function nameBrowser({ browser, title, current }: SessionRecord): string {
  const found = (of: [RegExp, string][]) => of.find(([pattern]) => pattern.test(browser))?.[1];
  const name = [found(KNOWN) ?? "A browser", found(SYSTEMS)].filter(Boolean).join(" on ");
  return `${name}, by ${title}${current ? " (this one)" : ""}`;
}
