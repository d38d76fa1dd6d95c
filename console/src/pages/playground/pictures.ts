/** Pictures that this tab can show beside their tokens. */
const shown = new Map<string, { preview: string; about: string }>();

export function rememberPicture(token: string, preview: string, about: string): void {
  shown.set(token, { preview, about });
}

export function pictureOf(token: string | undefined): { preview: string; about: string } | undefined {
  return token ? shown.get(token) : undefined;
}
