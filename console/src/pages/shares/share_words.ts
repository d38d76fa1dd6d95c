/** How long links work, in words. */
import { formatAgo } from "../../parts/time";

/** Lives to choose from, in seconds. */
export const LIVES = [
  { value: "3600", label: "1 hour" },
  { value: "86400", label: "1 day" },
  { value: "604800", label: "7 days" },
  { value: "2592000", label: "30 days" },
];

/** `Expires in 7 days`. */
export function formatEnd(expiresAt: string, now = Date.now()): string {
  return Date.parse(expiresAt) <= now ? "Expired" : `Expires ${formatAgo(expiresAt, now)}`;
}
