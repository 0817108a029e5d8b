// Finds every import of a source text without a TypeScript parser: comments and the contents of strings are removed
// first.

export type FoundImport = {
  readonly specifier: string;
  /** The import is erased at compile time. */
  readonly typeOnly: boolean;
};

export type Scan = {
  readonly imports: readonly FoundImport[];
  /** Number of imports whose specifier is computed. */
  readonly computed: number;
};

export function scanImports(source: string): Scan {
  const { code, strings } = withoutTexts(source);
  const imports: FoundImport[] = [];
  const add = (mark: string | undefined, typeOnly: boolean) => {
    const specifier = strings[Number(mark)];
    if (specifier !== undefined) imports.push({ specifier, typeOnly });
  };
  for (const [, keyword = '', clause = '', mark] of code.matchAll(FROM))
    add(mark, isTypeOnly(keyword, clause));
  for (const [, mark] of code.matchAll(BARE)) add(mark, false);
  for (const [, mark] of code.matchAll(CALL)) add(mark, false);
  for (const [, mark] of code.matchAll(MODULE_URL))
    if (strings[Number(mark)]?.endsWith('.ts')) add(mark, false);
  return { imports, computed: [...code.matchAll(COMPUTED)].length };
}

/** The code without comments and without the text of strings and templates. */
export const codeOf = (source: string): string => withoutTexts(source).code;

/** In `code` a string is its number between these. */
const OPEN = '\u0001';
const CLOSE = '\u0002';
const MARK = `${OPEN}(\\d+)${CLOSE}`;
const WORD = '(?<![.\\w$#])';
/** `import … from ''` and `export … from ''`. */
const FROM = new RegExp(`${WORD}(import|export)\\b([^;()=${OPEN}]*?)\\bfrom\\s*${MARK}`, 'g');
/** `import ''`. */
const BARE = new RegExp(`${WORD}import\\s*${MARK}`, 'g');
/** `import('')`, `require('')`, `import.meta.resolve('')`, also as a type: `import('').Name`. */
const CALLEE = '(?:import|require|import\\s*\\.\\s*meta\\s*\\.\\s*resolve)';
const CALL = new RegExp(`${WORD}${CALLEE}\\s*\\(\\s*${MARK}\\s*[,)]`, 'g');
const COMPUTED = new RegExp(`${WORD}${CALLEE}\\s*\\((?!\\s*${MARK}\\s*[,)])`, 'g');
/** `new URL('./x.ts', import.meta.url)`: how a worker or a script is named. */
const MODULE_URL = new RegExp(`new\\s+URL\\(\\s*${MARK}\\s*,\\s*import\\s*\\.\\s*meta\\s*\\.\\s*url`, 'g');

function isTypeOnly(keyword: string, clause: string): boolean {
  if (/^\s*type\b(?!\s*,|\s+from\b|\s*$)/.test(clause)) return true;
  const braces = /^\s*\{([^}]*)\}\s*$/.exec(clause)?.[1];
  const names = braces?.split(',').filter((name) => name.trim() !== '') ?? [];
  return keyword === 'import' && names.length > 0 && names.every((name) => /^\s*type\s/.test(name));
}

/** One of: comment, template, string, regular expression. A slash begins a regular expression only where a value may begin. */
const TEXTS = new RegExp(
  [
    '\\/\\/[^\\n]*',
    '\\/\\*[\\s\\S]*?\\*\\/',
    "'(?:[^'\\\\\\n]|\\\\[\\s\\S])*'",
    '"(?:[^"\\\\\\n]|\\\\[\\s\\S])*"',
    '`',
    '\\/(?:[^/\\\\\\n[]|\\\\.|\\[(?:[^\\]\\\\\\n]|\\\\.)*\\])+\\/[a-z]*',
    '[{}]',
  ].join('|'),
  'y',
);
const VALUE_MAY_BEGIN =
  /(?:^|[=(,:[!&|?{};+\-*%<>~^]|\b(?:return|typeof|case|in|of|void|throw|await|yield|else|do))\s*$/;

function withoutTexts(source: string): { code: string; strings: string[] } {
  const strings: string[] = [];
  let code = '';
  let at = 0;
  /** Open braces inside each `${` that has not ended yet. */
  const templates: number[] = [];
  const keep = (text: string) => {
    code += `${OPEN}${strings.push(text) - 1}${CLOSE}`;
  };
  const template = () => {
    const part = /(?:[^`\\$]|\\[\s\S]|\$(?!\{))*/y;
    part.lastIndex = at;
    const text = part.exec(source)?.[0] ?? '';
    at += text.length;
    if (source.startsWith('${', at)) {
      at += 2;
      templates.push(0);
      code += '(';
    } else {
      at += 1;
      code += ')';
    }
    return text;
  };
  while (at < source.length) {
    TEXTS.lastIndex = at;
    const found = TEXTS.exec(source)?.[0];
    const regex = found?.startsWith('/') && !/^\/[/*]/.test(found);
    if (found === undefined || (regex && !VALUE_MAY_BEGIN.test(code.slice(-40)))) {
      code += source[at++];
      continue;
    }
    at += found.length;
    const open = templates.length - 1;
    if (found === '`') {
      code += '(';
      template();
    } else if (found === '}' && templates[open] === 0) {
      templates.pop();
      code += ')';
      template();
    } else if (found === '{' || found === '}') {
      if (open >= 0) templates[open] = (templates[open] ?? 0) + (found === '{' ? 1 : -1);
      code += found;
    } else if (regex) code += '0';
    else if (found.startsWith('/')) code += found.includes('\n') ? '\n' : ' ';
    else keep(found.slice(1, -1));
  }
  return { code, strings };
}
