/** The path that a proxy serves the engine under, without a slash at its end; mostly empty. */
export const root: string =
  document.querySelector<HTMLMetaElement>('meta[name="holdfast-root"]')?.content.replace(/\/$/, "") ?? "";
