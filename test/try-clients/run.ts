// `bun run try:clients`: generates clients from the interface description of a relay on loopback, compiles them and calls
// the relay with them, and reads the description with linters. Prints a table; exit status 1 if anything failed. Not part
// of the tests: it installs the tools below from their registries, in a temporary folder, and needs the .NET SDK.
import { spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { makeWorld } from '#test/support/world/service-world.ts';

const VERSIONS = {
  nswag: '14.7.1',
  newtonsoft: '13.0.4',
  'openapi-typescript': '7.13.0',
  'openapi-fetch': '0.17.0',
  '@hey-api/openapi-ts': '0.99.0',
  typescript: '5.9.3',
  '@types/node': '24.10.1',
  '@redocly/cli': '2.77.0',
  '@stoplight/spectral-cli': '6.16.3',
} as const;
type NpmPackage = Exclude<keyof typeof VERSIONS, 'nswag' | 'newtonsoft'>;

type Row = {
  readonly tool: string;
  readonly version: string;
  readonly flags: string;
  readonly found: string;
  readonly ok: boolean;
};

/** What a tool works on. `document`: the file of the interface description. */
type Given = {
  readonly folder: string;
  readonly document: string;
  readonly relay: string;
  readonly target: string;
};

/** The program's output. Throws if it fails. */
function run(folder: string, command: string, ...args: readonly string[]): Promise<string> {
  const env = { ...process.env, DOTNET_CLI_TELEMETRY_OPTOUT: '1', DOTNET_NOLOGO: '1', NO_COLOR: '1' };
  const child = spawn(command, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve(output);
      else reject(new Error(`${command} ${args.join(' ')}: exit status ${code}\n${output.slice(-3000)}`));
    });
  });
}

const program = (name: string): string => join(import.meta.dirname, 'programs', name);

/** As the programs print them. */
const verifiedIn = (output: string): string =>
  [...output.matchAll(/^verified (.*)$/gm)].map(([, call]) => call).join(', ');

async function npmInstall(folder: string, ...names: readonly NpmPackage[]): Promise<void> {
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}');
  const packages = names.map((name) => `${name}@${VERSIONS[name]}`);
  await run(
    folder,
    'npm',
    'install',
    '--no-audit',
    '--no-fund',
    '--ignore-scripts',
    '--loglevel=error',
    ...packages,
  );
}

async function dotnetClient({ folder, document, relay, target }: Given): Promise<Row> {
  const tools = join(folder, 'tools');
  await run(
    folder,
    'dotnet',
    'tool',
    'install',
    'NSwag.ConsoleCore',
    '--version',
    VERSIONS.nswag,
    '--tool-path',
    tools,
  );
  const flags = ['/classname:RelayClient', '/namespace:Relay', '/generateNullableReferenceTypes:true'];
  const files = [`/input:${document}`, `/output:${join(folder, 'RelayClient.cs')}`];
  await run(folder, join(tools, 'nswag'), 'openapi2csclient', ...files, ...flags);
  const project = readFileSync(program('nswag.csproj.txt'), 'utf8');
  writeFileSync(join(folder, 'try.csproj'), project.replace('NEWTONSOFT_VERSION', VERSIONS.newtonsoft));
  copyFileSync(program('nswag.cs.txt'), join(folder, 'Program.cs'));
  await run(folder, 'dotnet', 'build', '--output', 'out');
  const output = await run(folder, 'dotnet', join('out', 'try.dll'), relay, target);
  return row('NSwag (C#, .NET 10, Newtonsoft.Json)', VERSIONS.nswag, flags.join(' '), output);
}

const row = (tool: string, version: string, flags: string, output: string): Row => ({
  tool,
  version,
  flags: flags === '' ? 'none' : flags,
  found: verifiedIn(output),
  ok: true,
});

/** Compiles the program strictly against what was generated, and runs it. */
async function typescriptProgram({ folder, relay, target }: Given, name: string): Promise<string> {
  copyFileSync(program(name), join(folder, 'program.ts'));
  const strict = ['--strict', '--noEmit', '--target', 'es2022', '--module', 'preserve'];
  const tsc = join(folder, 'node_modules/typescript/bin/tsc');
  await run(folder, 'node', tsc, ...strict, '--skipLibCheck', '--allowImportingTsExtensions', 'program.ts');
  return run(folder, process.execPath, 'program.ts', relay, target);
}

async function openapiFetch(given: Given): Promise<Row> {
  const { folder, document } = given;
  await npmInstall(folder, 'openapi-typescript', 'openapi-fetch', 'typescript', '@types/node');
  const flags = ['--default-non-nullable', 'false'];
  const generator = join(folder, 'node_modules/openapi-typescript/bin/cli.js');
  await run(folder, 'node', generator, document, '--output', 'generated.d.ts', ...flags);
  const output = await typescriptProgram(given, 'openapi-fetch.ts.txt');
  const version = `${VERSIONS['openapi-typescript']}, ${VERSIONS['openapi-fetch']}`;
  return row('openapi-typescript and openapi-fetch', version, flags.join(' '), output);
}

async function heyApi(given: Given): Promise<Row> {
  const { folder, document } = given;
  await npmInstall(folder, '@hey-api/openapi-ts', 'typescript', '@types/node');
  // Under Bun: it needs a newer Node than this project does.
  const generator = join(folder, 'node_modules/@hey-api/openapi-ts/bin/run.js');
  await run(folder, process.execPath, generator, '--input', document, '--output', 'generated');
  const output = await typescriptProgram(given, 'hey-api.ts.txt');
  return row('@hey-api/openapi-ts', VERSIONS['@hey-api/openapi-ts'], '', output);
}

async function redocly({ folder, document }: Given): Promise<Row> {
  await npmInstall(folder, '@redocly/cli');
  const output = await run(
    folder,
    join(folder, 'node_modules/.bin/redocly'),
    'lint',
    document,
    '--format=json',
  );
  const { totals } = JSON.parse(output.slice(output.indexOf('{'), output.lastIndexOf('}') + 1)) as {
    readonly totals: { readonly errors: number; readonly warnings: number };
  };
  const found = `${totals.errors} errors, ${totals.warnings} warnings`;
  const ok = totals.errors + totals.warnings === 0;
  return { tool: '@redocly/cli lint', version: VERSIONS['@redocly/cli'], flags: 'none', found, ok };
}

async function spectral({ folder, document }: Given): Promise<Row> {
  await npmInstall(folder, '@stoplight/spectral-cli');
  writeFileSync(join(folder, '.spectral.yaml'), 'extends: ["spectral:oas"]\n');
  const flags = '--fail-severity hint';
  const command = join(folder, 'node_modules/.bin/spectral');
  const output = await run(folder, command, 'lint', document, ...flags.split(' '));
  const ok = output.includes('No results');
  const version = VERSIONS['@stoplight/spectral-cli'];
  return { tool: 'spectral lint', version, flags, found: ok ? '0 results' : output.trim(), ok };
}

const TOOLS = { dotnetClient, openapiFetch, heyApi, redocly, spectral };

async function main(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'try-clients-'));
  const world = await makeWorld({ embedded: true });
  const rows: Row[] = [];
  let failed = 0;
  try {
    const { url: relay } = await world.start({ SCHEDULES: 'on' });
    const document = join(folder, 'openapi.json');
    writeFileSync(document, await (await fetch(`${relay}/openapi.json`)).text());
    for (const [name, tried] of Object.entries(TOOLS)) {
      mkdirSync(join(folder, name));
      const target = world.target.url(`/${name}`);
      try {
        rows.push(await tried({ folder: join(folder, name), document, relay, target }));
      } catch (cause) {
        failed += 1;
        console.error(cause);
      }
    }
  } finally {
    await world.end();
    rmSync(folder, { recursive: true, force: true });
  }
  console.log('| tool | version | flags | verified |\n|---|---|---|---|');
  for (const { tool, version, flags, found } of rows)
    console.log(`| ${tool} | ${version} | ${flags} | ${found} |`);
  return failed > 0 || rows.some(({ ok }) => !ok) ? 1 : 0;
}

process.exitCode = await main();
