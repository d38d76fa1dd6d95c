/** A price as a person says it. */
import type { Model } from "../api/shapes";
import { formatMoney } from "./money";

type Price = NonNullable<Model["price"]>;

export function priceParts(price: Price | null): string[] {
  if (price === null) return [];
  if ("input_per_million" in price) {
    const parts = [
      `${formatMoney(price.input_per_million)} in`,
      price.cached_input_per_million !== price.input_per_million &&
        `${formatMoney(price.cached_input_per_million)} cached`,
      price.cache_write_per_million !== price.input_per_million &&
        `${formatMoney(price.cache_write_per_million)} cache write`,
      price.cache_write_1h_per_million !== price.cache_write_per_million &&
        `${formatMoney(price.cache_write_1h_per_million)} 1h cache write`,
      `${formatMoney(price.output_per_million)} out`,
      price.reasoning_per_million !== price.output_per_million &&
        `${formatMoney(price.reasoning_per_million)} reasoning`,
    ].filter(Boolean);
    const tokens = `${parts.join(" · ")} per million tokens`;
    return isCharged(price.per_request) ? [tokens, `${formatMoney(price.per_request)} per request`] : [tokens];
  }
  const parts: string[] = [];
  if (isCharged(price.per_job)) parts.push(`${formatMoney(price.per_job)} per job`);
  if (isCharged(price.per_second)) parts.push(`${formatMoney(price.per_second)} per second`);
  if (isCharged(price.per_image)) parts.push(`${formatMoney(price.per_image)} per picture`);
  if (isCharged(price.per_thousand_faces)) parts.push(`${formatMoney(price.per_thousand_faces)} per 1,000 faces`);
  for (const [param, amount] of Object.entries(price.per_job_if)) parts.push(`${formatMoney(amount)} with ${param}`);
  for (const [param, amount] of Object.entries(price.per_second_if))
    parts.push(`${formatMoney(amount)} per second with ${param}`);
  for (const [param, amount] of Object.entries(price.per_image_if))
    parts.push(`${formatMoney(amount)} per picture with ${param}`);
  return parts.length ? parts : ["free"];
}

/** Return a price in one line, or null if unknown. */
export function priceLine(price: Price | null): string {
  return price === null ? "unknown" : priceParts(price).join(" + ");
}

function isCharged(amount: string): boolean {
  return Number(amount) !== 0;
}
