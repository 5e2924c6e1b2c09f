// webLink returns an address if its scheme is http or https. Programs may send addresses with any scheme.
export function webLink(url: string | undefined): string | undefined {
  if (!url || !URL.canParse(url)) return undefined;
  return /^https?:$/.test(new URL(url).protocol) ? url : undefined;
}
