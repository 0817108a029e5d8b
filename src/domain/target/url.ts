// Target URLs: what may be called, judged on the URL's text and parts alone. Addresses are judged elsewhere.

/** The parts of a URL as the WHATWG parser gives them (the parser itself is an argument: no globals here). */
export type UrlParts = {
  readonly href: string;
  readonly protocol: string;
  readonly username: string;
  readonly password: string;
  readonly hostname: string;
  /** Empty for the scheme's default. */
  readonly port: string;
  readonly pathname: string;
  readonly search: string;
  readonly hash: string;
};

/** `new URL(text)`, or null where that throws. Called once per request: what is checked is what is called. */
export type ParseUrl = (text: string) => UrlParts | null;

/** A URL that may be called as far as its text tells. */
export type Target = {
  /** Normalised, without fragment, the host without its trailing dot. The one text that is hashed and recorded. */
  readonly href: string;
  readonly origin: string;
  /** Lower case, punycode, no trailing dot, no brackets around IPv6. */
  readonly hostname: string;
  readonly port: number;
  /** Path and query as sent on the request line. */
  readonly path: string;
  /** True where `hostname` is an IP address. */
  readonly literal: boolean;
};
