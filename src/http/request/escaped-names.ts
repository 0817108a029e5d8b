// The value of a JSON text whose property names have escapes, without the runtime's parser for objects: that of V8 15
// (Deno 2.9) gives such a name the name that stood at its place in an earlier text, another caller's (nodejs/node#63785).

/** `text`: known to be JSON, nested so little that recursion is no danger. As `JSON.parse` is meant to give it. */
export function parseByName(text: string): unknown {
  let at = 0;
  return value();

  function value(): unknown {
    blanks();
    const char = text.charAt(at);
    if (char === '"') return string();
    if (char === '{') return object();
    if (char === '[') return array();
    const start = at;
    while (at < text.length && !/[,\]}\s]/.test(text.charAt(at))) at++;
    return JSON.parse(text.slice(start, at));
  }

  function object(): unknown {
    const made = {};
    for (members(); text.charAt(at) !== '}'; members()) {
      const name = string();
      blanks();
      at++;
      // Not by assignment: `__proto__` is a name like any other.
      Object.defineProperty(made, name, {
        value: value(),
        writable: true,
        enumerable: true,
        configurable: true,
      });
      blanks();
    }
    at++;
    return made;
  }

  function array(): unknown[] {
    const made: unknown[] = [];
    for (members(); text.charAt(at) !== ']'; members()) {
      made.push(value());
      blanks();
    }
    at++;
    return made;
  }

  /** Past an opening bracket or a comma, to what comes next: a member or the closing bracket. */
  function members(): void {
    if (/[{[,]/.test(text.charAt(at))) at++;
    blanks();
  }

  function string(): string {
    const start = at;
    at = endOfString(text, start);
    return JSON.parse(text.slice(start, at));
  }

  function blanks(): void {
    while (/[ \t\n\r]/.test(text.charAt(at))) at++;
  }
}

/** Index after the closing quote of the string that opens at `start`; the text's end where none closes it. */
export function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === '"') return at + 1;
  }
  return text.length;
}
