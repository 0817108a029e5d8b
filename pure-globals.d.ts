// The globals that src/domain and src/ports may use: deterministic ones, which every runtime and browser has.
// tsconfig.pure.json compiles both rooms with these and no others.

declare class TextEncoder {
  encode(text: string): Uint8Array<ArrayBuffer>;
}

declare class TextDecoder {
  constructor(label: 'utf-8', options: { readonly fatal: true; readonly ignoreBOM: true });
  decode(bytes: Uint8Array): string;
}

declare class URL {
  constructor(url: string, base?: string);
  static parse(url: string): URL | null;
  readonly href: string;
  readonly origin: string;
  readonly protocol: string;
  readonly username: string;
  readonly password: string;
  readonly host: string;
  readonly hostname: string;
  readonly port: string;
  readonly pathname: string;
  readonly search: string;
  readonly hash: string;
}

declare function atob(base64: string): string;
declare function btoa(binary: string): string;
