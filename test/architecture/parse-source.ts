// What the tests of the architecture read in a source text: its imports, its code without texts, the length of its parts.
import assert from 'node:assert/strict';
import { type Node, parseSync, Visitor, type VisitorObject } from 'oxc-parser';

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

function visit(source: string, visitor: VisitorObject) {
  const parsed = parseSync('source.ts', source);
  assert.deepEqual(parsed.errors, []);
  new Visitor(visitor).visit(parsed.program);
  return parsed;
}

export function scanImports(source: string): Scan {
  const imports: FoundImport[] = [];
  let computed = 0;
  const add = (specifier: Node | null | undefined, typeOnly: boolean) => {
    if (specifier?.type !== 'Literal' || typeof specifier.value !== 'string') computed++;
    else imports.push({ specifier: specifier.value, typeOnly });
  };
  visit(source, {
    ImportDeclaration({ source: specifier, importKind, specifiers }) {
      const areTypes = specifiers.every((one) => one.type === 'ImportSpecifier' && one.importKind === 'type');
      add(specifier, importKind === 'type' || (specifiers.length > 0 && areTypes));
    },
    ExportNamedDeclaration({ source: specifier, exportKind, specifiers }) {
      const areTypes = specifiers.length > 0 && specifiers.every((one) => one.exportKind === 'type');
      if (specifier !== null) add(specifier, exportKind === 'type' || areTypes);
    },
    ExportAllDeclaration: ({ source: specifier, exportKind }) => add(specifier, exportKind === 'type'),
    ImportExpression: ({ source: specifier }) => add(specifier, false),
    TSImportType: ({ source: specifier }) => add(specifier, false),
    CallExpression({ callee, arguments: [specifier] }) {
      const called = source.slice(callee.start, callee.end);
      if (called === 'require' || called === 'import.meta.resolve') add(specifier, false);
    },
    // How a worker or a script is named.
    NewExpression({ callee, arguments: [path, base] }) {
      const isUrl = callee.type === 'Identifier' && callee.name === 'URL';
      if (!isUrl || base === undefined || source.slice(base.start, base.end) !== 'import.meta.url') return;
      if (path?.type === 'Literal' && String(path.value).endsWith('.ts')) add(path, false);
    },
  });
  return { imports, computed };
}

/** The code without comments and without the text of strings, templates and regular expressions. */
export function codeOf(source: string): string {
  const texts: { readonly start: number; readonly end: number }[] = [];
  const { comments } = visit(source, {
    Literal: (literal) =>
      void (typeof literal.value === 'string' || 'regex' in literal ? texts.push(literal) : 0),
    TemplateElement: (element) => void texts.push(element),
  });
  let code = '';
  let at = 0;
  for (const { start, end } of [...texts, ...comments].sort((a, b) => a.start - b.start)) {
    code += `${source.slice(at, start)} `;
    at = end;
  }
  return code + source.slice(at);
}

/** Lines of each function and class. */
export function sizesOf(source: string): readonly { readonly name: string; readonly lines: number }[] {
  const sizes: { name: string; lines: number }[] = [];
  const add = ({ start, end }: Node) => {
    const lines = source.slice(start, end).split('\n');
    sizes.push({ name: lines[0] ?? '', lines: lines.length });
  };
  visit(source, {
    ClassDeclaration: add,
    ClassExpression: add,
    FunctionDeclaration: add,
    FunctionExpression: add,
    ArrowFunctionExpression: add,
  });
  return sizes;
}
