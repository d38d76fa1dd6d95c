/** Models that vendors listed in tests of their connection, kept until the page is left. */
const listed = new Map<string, string[]>();

export function rememberModels(vendor: string, models: string[]): void {
  if (models.length > 0) listed.set(vendor, models);
}

export function listedModels(vendor: string): string[] {
  return listed.get(vendor) ?? [];
}
