/** `1,204`. */
export function formatCount(count: number | null | undefined): string {
  return count === null || count === undefined ? "" : count.toLocaleString("en-US");
}

/** `48.2 kB`. */
export function formatBytes(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined) return "";
  if (bytes < 1000) return `${bytes} B`;
  const [size, unit] = bytes < 1e6 ? [bytes / 1e3, "kB"] : bytes < 1e9 ? [bytes / 1e6, "MB"] : [bytes / 1e9, "GB"];
  return `${size >= 100 ? Math.round(size) : size.toFixed(1)} ${unit}`;
}
