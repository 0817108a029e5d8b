// Builds elements of a page. Text is always inserted as text: no markup is ever parsed.

type Part = Node | string;

export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Readonly<Record<string, string>> = {},
  ...parts: readonly Part[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...parts);
  return made;
}

export function part<T extends HTMLElement>(id: string, kind: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${id}`);
  return found;
}

export const code = (text: string): HTMLElement => element('code', {}, text);

export function factList(rows: readonly (readonly [name: string, value: Part])[]): HTMLElement {
  const parts = rows.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]);
  return element('dl', { class: 'facts' }, ...parts);
}
