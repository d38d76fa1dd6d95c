/** A price of the price book in words. Its parts are decimal strings by name. */
import { formatMoney } from "../../../parts/money";

type Written = Record<string, unknown>;

const WORDS_OF: Record<string, string> = {
  input_per_million: "in per million tokens",
  output_per_million: "out per million tokens",
  cached_input_per_million: "cached per million tokens",
  cache_write_per_million: "cache write per million tokens",
  cache_write_1h_per_million: "1h cache write per million tokens",
  reasoning_per_million: "reasoning per million tokens",
  per_request: "per request",
  per_job: "per job",
  per_second: "per second",
  per_image: "per picture",
  per_minute: "per minute",
  per_million_characters: "per million characters",
  per_thousand_faces: "per 1,000 faces",
};

/** The words for a part: `input_per_million` as "in per million tokens". */
export function partWords(name: string): string {
  return WORDS_OF[name] ?? name.replaceAll("_", " ");
}

export function priceWords(price: Written): string[] {
  const parts = Object.entries(price).flatMap(([name, amount]) => {
    if (typeof amount === "object" && amount !== null) {
      return Object.entries(amount as Record<string, string>).map(([when, each]) => `${money(each)} with ${when}`);
    }
    return isCharged(amount) ? [`${money(amount)} ${partWords(name)}`] : [];
  });
  return parts.length > 0 ? parts : ["free"];
}

function money(amount: unknown): string {
  return formatMoney(String(amount));
}

function isCharged(amount: unknown): boolean {
  return amount !== null && Number(amount) !== 0;
}
