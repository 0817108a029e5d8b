// Reads the JUnit report of a test run: the form that `bun test` and `deno test` have in common.

export type CaseResult = { readonly title: string; readonly outcome: 'passed' | 'failed' | 'skipped' };

export function readJunit(xml: string): CaseResult[] {
  return [...xml.matchAll(/<testcase\b([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g)].map((found) => {
    const [, attributes = '', content = ''] = found;
    return {
      title: decoded(/\bname="([^"]*)"/.exec(attributes)?.[1] ?? ''),
      outcome: /<(failure|error)\b/.test(content)
        ? 'failed'
        : /<skipped\b/.test(content)
          ? 'skipped'
          : 'passed',
    };
  });
}

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

const decoded = (text: string): string =>
  text.replace(/&(?:#(\d+)|(\w+));/g, (entity, code, name) =>
    code === undefined ? (ENTITIES[name] ?? entity) : String.fromCodePoint(Number(code)),
  );
