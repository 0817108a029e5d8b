// Values as each language writes them: on one line where they fit, else a member a line.

/** In the single quotes of a POSIX shell, in which nothing can be escaped: no example has one in it. */
export const shellJson = (value: unknown): string =>
  `'${written(value, { indent: '  ', pad: '', key: (name) => `"${name}": `, comma: false, text: JSON.stringify })}'`;

/** `margin`: what stands before the line that it begins on. */
export const tsLiteral = (value: unknown, margin = ''): string =>
  written(
    value,
    { indent: '  ', pad: ' ', key: (name) => `${name}: `, comma: true, text: (text) => `'${text}'` },
    margin,
  );

/** `margin` as above. The examples have neither true nor null in them, which Python spells in its own way. */
export const pyLiteral = (value: unknown, margin = ''): string =>
  written(
    value,
    { indent: '    ', pad: '', key: (name) => `"${name}": `, comma: true, text: JSON.stringify },
    margin,
  );

type Style = {
  readonly indent: string;
  /** Between a brace and what it holds. */
  readonly pad: string;
  readonly key: (name: string) => string;
  /** After the last line too. */
  readonly comma: boolean;
  readonly text: (text: string) => string;
};

const LINE = 64;

function written(value: unknown, style: Style, margin = ''): string {
  if (typeof value === 'string') return style.text(value);
  if (typeof value !== 'object' || value === null) return String(value);
  const inner = margin + style.indent;
  const list = Array.isArray(value);
  const [open, close, pad] = list ? ['[', ']', ''] : ['{', '}', style.pad];
  const parts = Object.entries(value).map(
    ([name, one]) => (list ? '' : style.key(name)) + written(one, style, inner),
  );
  const line = `${open}${pad}${parts.join(', ')}${pad}${close}`;
  if (line.length <= LINE && !line.includes('\n')) return line;
  return `${open}\n${inner}${parts.join(`,\n${inner}`)}${style.comma ? ',' : ''}\n${margin}${close}`;
}
