// The request header Prefer (RFC 7240), as far as a paid route applies it: return=representation.

/** As it is named in Preference-Applied. */
export const REPRESENTATION = 'return=representation';

/** Whether the caller wants the answer of the target in the answer of the relay. The first `return` counts (section 2). */
export function prefersRepresentation(headers: Headers): boolean {
  const wanted = elementsOf(headers.get('prefer') ?? '', ',')
    .map((preference) => elementsOf(preference, ';')[0] ?? '')
    .map((text) => /^\s*return\s*=\s*(?:"([^"]*)"|([^\s"]*))\s*$/i.exec(text))
    .find((match) => match !== null);
  return (wanted?.[1] ?? wanted?.[2]) === 'representation';
}

/** The parts between separators that are in no quoted string. */
function elementsOf(text: string, separator: ',' | ';'): readonly string[] {
  const elements = [''];
  let isQuoted = false;
  let isEscaped = false;
  for (const character of text) {
    if (character === separator && !isQuoted) {
      elements.push('');
      continue;
    }
    if (character === '"' && !isEscaped) isQuoted = !isQuoted;
    isEscaped = isQuoted && character === '\\' && !isEscaped;
    elements.push(`${elements.pop()}${character}`);
  }
  return elements;
}
