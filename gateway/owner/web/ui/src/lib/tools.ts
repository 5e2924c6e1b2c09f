// A robot's tools, and which of them turn the head, set the lights and so on. Their names differ between firmwares, so
// they are found by words of the name and by arguments, as device.FindControl does on the server.

import { send } from "./api.js";

export interface Argument {
  type: string;
  default?: unknown;
  minimum?: number;
  maximum?: number;
  enum?: unknown[];
  description?: string;
  items?: { type?: string };
}

export interface Tool {
  name: string;
  description: string;
  schema: { type?: string; properties?: Record<string, Argument> | null; required?: string[] | null };
  user_only: boolean;
}

export interface Result {
  text: string;
  pictures: { type: string; data: string }[] | null;
}

// Control is a tool and the names of the requested arguments.
export interface Control {
  tool: Tool;
  args: string[];
}

function words(name: string): string {
  return ` ${name.toLowerCase().replace(/[^a-z0-9]+/g, " ")} `;
}

// find returns the first tool whose name contains these words and that has one argument of each group.
export function find(tools: Tool[], name: string, ...groups: string[][]): Control | undefined {
  for (const tool of tools) {
    if (!words(tool.name).includes(` ${name} `)) continue;
    const has = tool.schema.properties ?? {};
    const args = groups.map((g) => g.find((a) => Object.hasOwn(has, a)));
    if (args.every((a): a is string => a !== undefined)) return { tool, args };
  }
  return undefined;
}

// findAny is like find for several names, the preferred one first.
export function findAny(tools: Tool[], names: string[], ...groups: string[][]): Control | undefined {
  for (const name of names) {
    const found = find(tools, name, ...groups);
    if (found) return found;
  }
  return undefined;
}

export interface Controls {
  volume?: Control;
  brightness?: Control;
  head?: Control; // arguments yaw and, if the head can nod, pitch
  angles?: Control;
  lights?: Control;
  photo?: Control;
  status?: Control;
}

export function controlsOf(tools: Tool[]): Controls {
  return {
    volume: find(tools, "set volume", ["volume", "level", "value"]),
    brightness: find(tools, "set brightness", ["brightness", "level", "value"]),
    head: find(tools, "set head angles", ["yaw", "pan", "x"], ["pitch", "tilt", "y"]) ?? find(tools, "set head", ["yaw", "pan", "x"]),
    angles: find(tools, "get head angles"),
    lights: findAny(tools, ["set led color", "set all color", "set rgb", "set color", "led set"], ["red", "r"], ["green", "g"], ["blue", "b"]),
    photo: findAny(tools, ["take photo", "camera take photo"]),
    status: find(tools, "get device status"),
  };
}

// within limits a number to the range of an argument.
export function within(c: Control, arg: string, n: number): number {
  const a = c.tool.schema.properties?.[arg];
  return Math.min(a?.maximum ?? n, Math.max(a?.minimum ?? n, Math.round(n)));
}

// run calls a tool and returns its result.
export function run(robot: string, tool: string, args: Record<string, unknown>): Promise<Result> {
  return send<Result>("POST", `api/v1/devices/${encodeURIComponent(robot)}/tools/${encodeURIComponent(tool)}`, { arguments: args });
}
