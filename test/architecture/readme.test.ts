// The commands, files, links, limits and variables that the guides name exist.

import assert from 'node:assert/strict';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { Command } from 'commander';
import { ConfigError, readConfig, readVariable } from '#src/config.ts';
import { VARIABLES, variableTable } from '#src/config-variables.ts';
import { RESULTS_FILE, readmeSection, readmeTable, readResults } from '#test/bench/results.ts';
import { everyFigure } from '#test/support/given/every-figure.ts';
import { rootPath } from '#test/support/process/runtime.ts';
import { IMPORT_TABLE } from './import-table.ts';

const GUIDES = globSync(['*.md', '{src,projections,deploy,test}/**/*.md'], { cwd: rootPath })
  .filter((file) => !file.startsWith('src/verify/built/'))
  .sort()
  .map((file) => {
    const text = readFileSync(`${rootPath}/${file}`, 'utf8');
    // All that is in code: fenced blocks and inline.
    const code = [...text.matchAll(/```[a-z]*\n([\s\S]*?)```|`([^`\n]+)`/g)].map(
      ([, block, inline]) => block ?? inline ?? '',
    );
    return { file, text, code };
  });
const guideOf = (file: string): string => GUIDES.find((guide) => guide.file === file)?.text ?? '';
const README = guideOf('README.md');
/** The guides for operators: what has a row in one of them has none in another. */
const OPERATORS = GUIDES.filter(({ file }) => /^src\/(?:DEPLOYING|RUNBOOK|MONEY)\.md$/.test(file));
const LINE = 400;

const { scripts, dependencies } = JSON.parse(readFileSync(`${rootPath}/package.json`, 'utf8'));

/** The names in the first cells of every table for operators whose head begins with this word. */
const namedIn = (head: string): readonly string[] =>
  OPERATORS.flatMap(({ text }) =>
    [...text.matchAll(new RegExp(`^\\| ${head} \\|.*\\n\\|[-|]+\\n((?:\\|.*\\n)+)`, 'gm'))].flatMap(
      ([, rows = '']) => [...rows.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name = '']) => name),
    ),
  ).sort();

/** `guide: name` of every name in the guides' code that is not known. */
const unknownIn = (guides: typeof GUIDES, names: (code: string) => readonly string[]) =>
  guides.flatMap(({ file, code }) => code.flatMap(names).map((name) => `${file}: ${name}`));

test('readme: the test line is there once, with the version of Bun that the tests run under', () => {
  const lines = README.split('\n').filter((line) => /^npx .*\brun test$/.test(line));
  const bun = `npx -y bun@${dependencies.bun}`;
  assert.deepEqual(lines, [`${bun} install --frozen-lockfile && ${bun} run test`]);
});

test('readme: at most 12 kB, and its table of measures comes from bench.json', () => {
  assert.ok(Buffer.byteLength(README) <= 12 * 1024, `${Buffer.byteLength(README)} bytes`);
  // As long as there are no results there is no table.
  const expected = existsSync(RESULTS_FILE) ? readmeTable(readResults()) : '';
  assert.equal(readmeSection(README), expected, 'run `bun run bench --readme`');
});

test('guides: every script that they name exists', () => {
  let named = 0;
  const unknown = unknownIn(GUIDES, (code) => {
    const names = [...code.matchAll(/\b(?:bun(?:@[\d.]+)?|npm|bunx) run ([\w:-]+)/g)].map(
      ([, name = '']) => name,
    );
    named += names.length;
    return names.filter((name) => !(name in scripts));
  });
  assert.deepEqual(unknown, []);
  assert.ok(named >= 3, `${named} scripts named`);
});

test('guides: every file of the project that they name exists', () => {
  let named = 0;
  // a room may be named before its first file exists; imports.test.ts compares the table with the files
  const exists = (path: string) =>
    existsSync(`${rootPath}/${path}`) || IMPORT_TABLE.some(({ room }) => room === path);
  const unknown = unknownIn(GUIDES, (code) => {
    const paths = [
      ...code.matchAll(/(?<![\w/*.…:-])(?:deploy|src|test|projections|migrations|\.ci)\/[\w./@-]+/g),
    ].map(([path]) => path.replace(/[/.]+$/, ''));
    named += paths.length;
    return paths.filter((path) => !exists(path));
  });
  assert.deepEqual(unknown, []);
  assert.ok(named >= 10, `${named} files named`);
});

test('guides: what the program and its deployment name of them exists, headings too', () => {
  const files = globSync(['src/**/*.ts', 'deploy/**/*.*'], { cwd: rootPath }).filter(
    (file) => !file.startsWith('src/verify/built/'),
  );
  const named = files.flatMap((file) =>
    [
      ...readFileSync(`${rootPath}/${file}`, 'utf8').matchAll(
        /(?:see ([A-Z][a-z ]+) in )?(?:src\/)?\b([A-Z]{5,})\.md/g,
      ),
    ].map(([, heading, name = '']) => ({ file, heading, name })),
  );
  const missing = named.filter(({ heading, name }) => {
    const guide = guideOf(`src/${name}.md`);
    return guide === '' || (heading !== undefined && !guide.includes(`# ${heading}\n`));
  });
  assert.deepEqual(missing, []);
  assert.ok(named.filter(({ heading }) => heading !== undefined).length >= 3, `${named.length} named`);
});

test('guides: every link within the project leads to a file, and to a heading in it', () => {
  const links = GUIDES.flatMap(({ file, text }) =>
    [...text.matchAll(/\]\((?!https?:)([^)\s]+)\)/g)].map(([, link = '']) => ({ file, link })),
  );
  const broken = links.filter(({ file, link }) => {
    const [path = '', anchor] = link.split('#');
    const target = path === '' ? file : join(dirname(file), path);
    if (!existsSync(`${rootPath}/${target}`)) return true;
    return anchor !== undefined && !anchorsOf(readFileSync(`${rootPath}/${target}`, 'utf8')).includes(anchor);
  });
  assert.deepEqual(broken, []);
  assert.ok(links.length >= 10, `${links.length} links`);
});

/** As GitHub makes them. */
const anchorsOf = (markdown: string): readonly string[] =>
  [...markdown.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );

/** The commands as src/cli declares them. */
async function relayCommand(): Promise<Command> {
  const program = new Command('relay');
  const main = readFileSync(`${rootPath}/src/cli/relay.ts`, 'utf8');
  for (const file of readdirSync(`${rootPath}/src/cli`)) {
    // relay.ts runs, and so does the launcher.
    if (file === 'relay.ts' || !file.endsWith('.ts')) continue;
    const exported: Record<string, unknown> = await import(`${rootPath}/src/cli/${file}`);
    for (const [name, add] of Object.entries(exported))
      if (main.includes(`\n  ${name},\n`) && typeof add === 'function') add(program, () => undefined);
  }
  return program;
}

test('guides: every command of relay and every option that they name exists', async () => {
  const relay = await relayCommand();
  const everyOption = new Set<string>();
  const collect = (command: Command): void => {
    for (const { long } of command.options) if (long) everyOption.add(long);
    command.commands.forEach(collect);
  };
  collect(relay);
  everyOption.add('--help');
  let named = 0;
  const unknown = unknownIn(GUIDES, (code) => {
    // an option alone, in running text
    if (/^--[a-z-]+( [A-Z_]+)?$/.test(code) && !everyOption.has(code.split(' ')[0] ?? '')) return [code];
    // "the relay answers" is a sentence
    return [
      ...code.matchAll(/(?<!\b[Tt]he)(?:^|\s)(?:relay|src\/cli\/relay\.ts) ([a-z]+\b[^\n#|;&]*)/g),
    ].flatMap(([, words = '']) => {
      named += 1;
      let command = relay;
      const tokens = words.split(/[\s'",]+/).map((token) => token.replace(/\.$/, ''));
      for (let next = tokens[0]; next !== undefined; next = tokens[0]) {
        const sub = command.commands.find((one) => one.name() === next);
        if (sub === undefined) break;
        command = sub;
        tokens.shift();
      }
      if (command === relay) return [words];
      const options = ['--help', ...command.options.map(({ long }) => long)];
      return tokens
        .filter((token) => token.startsWith('--') && !options.includes(token.split('=')[0] ?? ''))
        .map((option) => `${command.name()} ${option}`);
    });
  });
  assert.deepEqual(unknown, []);
  assert.ok(named >= 20, `${named} commands named`);
});

test('operators: no line of their guides, and of the decisions, has over 400 characters', () => {
  const guides = [...OPERATORS, ...GUIDES.filter(({ file }) => file === 'src/DECISIONS.md')];
  assert.equal(guides.length, 4);
  const long = guides.flatMap(({ file, text }) =>
    text.split('\n').flatMap((line, n) => (line.length > LINE ? [`${file}:${n + 1}: ${line.length}`] : [])),
  );
  assert.deepEqual(long, []);
});

test('operators: every command of relay is in one row of one guide', async () => {
  const paths = (command: Command, path: string): readonly string[] => [
    ...(command.commands.length === 0 || command.options.length > 0 ? [path] : []),
    ...command.commands.flatMap((one) => paths(one, `${path} ${one.name()}`)),
  ];
  assert.deepEqual(namedIn('command'), [...paths(await relayCommand(), 'relay')].sort());
});

test('operators: every metric is in one row of one guide, as the service describes it', async () => {
  const rows = [...(await everyFigure()).matchAll(/^# HELP (\w+) (.+)$/gm)].map(
    ([, name, help]) => `| \`${name}\` | ${help} |`,
  );
  assert.ok(rows.length >= 30, `${rows.length} metrics`);
  assert.equal(namedIn('metric').length, rows.length);
  const table = ['| metric | meaning |', '|---|---|', ...rows].join('\n');
  assert.ok(guideOf('src/RUNBOOK.md').includes(`\n${table}\n`), `src/RUNBOOK.md lacks this table:\n${table}`);
});

test('operators: every variable is in one row of one guide, as it is declared', () => {
  assert.deepEqual(namedIn('variable'), Object.keys(VARIABLES).sort());
  assert.ok(
    guideOf('src/DEPLOYING.md').includes(`\n${variableTable()}\n`),
    `src/DEPLOYING.md lacks this table:\n${variableTable()}`,
  );
});

test('operators: the variables are those that config.ts reads', () => {
  const read = new Set<string>();
  const watched = new Proxy<Record<string, string>>(
    {},
    {
      get(_, name) {
        read.add(String(name));
        return undefined;
      },
    },
  );
  readConfig(watched);
  readVariable('RELAY_BUYER_PRIVATE_KEY', watched);
  assert.deepEqual(Object.keys(VARIABLES).sort(), [...read].sort());
});

test('operators: the required variables are required', () => {
  const faultsOf = (env: Record<string, string>) => {
    try {
      readConfig(env);
      return [];
    } catch (error) {
      assert.ok(error instanceof ConfigError);
      return error.faults.map(({ variable }) => variable).sort();
    }
  };
  assert.deepEqual(faultsOf({ X402_ENABLED: 'true' }), [
    'X402_FACILITATOR_URL',
    'X402_PAY_TO',
    'X402_RPC_URL',
  ]);
  assert.deepEqual(faultsOf({ EVENTSTORE_URL: 'esdb://log.example:2113' }), [
    'DATABASE_URL',
    'SIGNING_KEYS_FILE',
  ]);
  assert.deepEqual(faultsOf({ HOST: '0.0.0.0' }), ['ALLOW_FREE_RELAY']);
});

test('operators: every variable that the guides name is in the table', () => {
  // Read by the packages and the runtimes themselves.
  const others = [
    'OTEL_EXPORTER_OTLP_HEADERS',
    'NODE_EXTRA_CA_CERTS',
    'HTTP_PROXY',
    'HTTPS_PROXY',
    'NO_PROXY',
    'BUN_CONFIG_MAX_HTTP_REQUESTS',
    // Of the proxy, in the compose files.
    'RELAY_HOST',
  ];
  const known = [...Object.keys(VARIABLES), ...others];
  const unknown = unknownIn(OPERATORS, (code) =>
    (code.match(/(?<![\w{/])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?![\w*])/g) ?? []).filter(
      (name) => !known.includes(name) && name !== 'KEY_ID' && !name.startsWith('AF_'),
    ),
  );
  assert.deepEqual(unknown, []);
});

test('guides: the metrics that they name are exposed by the service', async () => {
  const text = await everyFigure();
  const named = unknownIn(GUIDES, (code) => code.match(/\brelay_[a-z_]+/g) ?? []);
  assert.ok(named.length >= 6, `${named.length} metrics named`);
  assert.deepEqual(
    named.filter((one) => !new RegExp(`^(?:# TYPE )?${one.split(': ')[1]}[ {]`, 'm').test(text)),
    [],
  );
});
