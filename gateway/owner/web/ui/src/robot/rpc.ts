// The robot's MCP server, with the restrictions of the firmware: JSON-RPC without batches, numeric IDs, errors without a
// code, and lists in pages of 8000 bytes.

import { fieldsOf, isFields, numberOf, textOf, type Fields } from "./wire.js";

export interface Argument {
  name: string;
  type: "boolean" | "integer" | "string";
  fallback?: boolean | number | string; // an argument without one is required
  limits?: [least: number, most: number];
}

export type Values = Record<string, boolean | number | string>;

export interface Tool {
  name: string;
  description: string;
  arguments: Argument[];
  userOnly?: boolean; // listed on request only, but callable
  run(v: Values): string | Promise<string>;
}

// Failure is an error with the text of the firmware.
export class Failure extends Error {}

const pageSize = 8000;

export interface Called {
  name: string;
  given: string;
  result: string;
  failed: boolean;
}

export class RPC {
  constructor(
    private readonly tools: Tool[],
    private readonly who: { name: string; version: string },
    private readonly vision: (url: string, token: string) => void,
    private readonly called: (c: Called) => void,
  ) {}

  // answer carries out a request and returns the response, or undefined if the firmware would not respond.
  async answer(request: unknown): Promise<Fields | undefined> {
    if (!isFields(request) || request["jsonrpc"] !== "2.0") return undefined;
    const method = textOf(request["method"]);
    const id = numberOf(request["id"]);
    const given = request["params"];
    if (method === undefined || method.startsWith("notifications") || id === undefined) return undefined;
    if (given !== undefined && !isFields(given)) return undefined;
    try {
      return { jsonrpc: "2.0", id: Math.trunc(id), result: await this.result(method, given) };
    } catch (e) {
      return { jsonrpc: "2.0", id: Math.trunc(id), error: { message: e instanceof Error ? e.message : "internal error" } };
    }
  }

  private result(method: string, params: Fields | undefined): Fields | Promise<Fields> {
    switch (method) {
      case "initialize": return this.initialize(params);
      case "tools/list": return this.list(textOf(params?.["cursor"]) ?? "", params?.["withUserTools"] === true);
      case "tools/call": return this.call(params);
    }
    throw new Failure(`Method not implemented: ${method}`);
  }

  private initialize(params: Fields | undefined): Fields {
    const vision = fieldsOf(fieldsOf(params?.["capabilities"])["vision"]);
    const url = textOf(vision["url"]);
    if (url !== undefined) this.vision(url, textOf(vision["token"]) ?? "");
    return { protocolVersion: "2024-11-05", capabilities: { tools: {} }, serverInfo: this.who };
  }

  // list returns a page of tools. A cursor is the name of the first tool of a page.
  private list(cursor: string, withUserTools: boolean): Fields {
    const tools: Fields[] = [];
    let size = 0;
    let found = cursor === "";
    for (const t of this.tools) {
      found ||= t.name === cursor;
      if (!found || (t.userOnly && !withUserTools)) continue;
      const entry = entryOf(t);
      size += new TextEncoder().encode(JSON.stringify(entry)).length + 1;
      if (size + 40 > pageSize) return { tools, nextCursor: t.name };
      tools.push(entry);
    }
    if (tools.length === 0) throw new Failure("Failed to add tool  because of payload size limit");
    return { tools };
  }

  private async call(params: Fields | undefined): Promise<Fields> {
    if (!params) throw new Failure("Missing params");
    const name = textOf(params["name"]);
    if (name === undefined) throw new Failure("Missing name");
    const given = params["arguments"];
    if (given !== undefined && !isFields(given)) throw new Failure("Invalid arguments");
    const c: Called = { name, given: JSON.stringify(given ?? {}), result: "", failed: false };
    try {
      const tool = this.tools.find((t) => t.name === name);
      if (!tool) throw new Failure(`Unknown tool: ${name}`);
      c.result = await tool.run(bind(tool, given ?? {}));
    } catch (e) {
      c.failed = true;
      c.result = e instanceof Error ? e.message : "internal error";
      this.called(c);
      throw e;
    }
    this.called(c);
    return { content: [{ type: "text", text: c.result }], isError: false };
  }
}

function entryOf(t: Tool): Fields {
  const properties = Object.fromEntries(t.arguments.map((a) => [a.name, {
    type: a.type, ...(a.fallback === undefined ? {} : { default: a.fallback }), ...(a.limits ? { minimum: a.limits[0], maximum: a.limits[1] } : {}),
  }]));
  const required = t.arguments.filter((a) => a.fallback === undefined).map((a) => a.name);
  return {
    name: t.name, description: t.description, inputSchema: { type: "object", properties, ...(required.length > 0 ? { required } : {}) },
    ...(t.userOnly ? { annotations: { audience: ["user"] } } : {}),
  };
}

// bind returns the values of a tool's arguments. It ignores the case of names, and values of the wrong type.
function bind(t: Tool, given: Fields): Values {
  const v: Values = {};
  for (const a of t.arguments) {
    const key = Object.keys(given).find((k) => k.toLowerCase() === a.name.toLowerCase());
    const value = fitting(a, key === undefined ? undefined : given[key]) ?? a.fallback;
    if (value === undefined) throw new Failure(`Missing valid argument: ${a.name}`);
    if (typeof value === "number" && a.limits) {
      if (value < a.limits[0]) throw new Failure(`Value is below minimum allowed: ${a.limits[0]}`);
      if (value > a.limits[1]) throw new Failure(`Value exceeds maximum allowed: ${a.limits[1]}`);
    }
    v[a.name] = value;
  }
  return v;
}

function fitting(a: Argument, value: unknown): boolean | number | string | undefined {
  switch (a.type) {
    case "boolean": return typeof value === "boolean" ? value : undefined;
    case "integer": return typeof value === "number" && Number.isFinite(value) ? Math.trunc(value) : undefined;
    case "string": return textOf(value);
  }
}
