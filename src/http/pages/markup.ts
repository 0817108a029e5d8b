// HTML and SVG by template: what is put in is escaped, unless it is markup made here.

export type Markup = { readonly markup: string };

type Part = string | number | Markup | readonly Markup[];

export function markup(texts: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  let whole = texts[0] ?? '';
  for (let i = 1; i < texts.length; i++) whole += shown(parts[i - 1] ?? '') + texts[i];
  return { markup: whole };
}

function shown(part: Part): string {
  if (typeof part === 'string' || typeof part === 'number') return escapeText(String(part));
  if ('markup' in part) return part.markup;
  return part.map(({ markup }) => markup).join('');
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escapeText(text: string): string {
  return /[&<>"']/.test(text) ? text.replace(/[&<>"']/g, (char) => ENTITIES[char] ?? '') : text;
}
