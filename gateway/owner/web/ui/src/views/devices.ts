// The robots, as views name them and choose among them.

import { get } from "../lib/api.js";

export interface Device {
  id: string;
  mac: string;
  name?: string;
  board?: string;
  firmware?: string;
  adopted: boolean;
  connected: boolean;
  talking: boolean;
  senses?: string[] | null;
}

export async function devices(): Promise<Device[]> {
  return (await get<Device[] | null>("api/v1/devices")) ?? [];
}

// nameOf is what a robot is called: its name, or else its MAC address.
export function nameOf(list: readonly Device[], id: string): string {
  const one = list.find((d) => d.id === id);
  return one?.name || one?.mac || id;
}

// called is the same of one robot.
export function called(d: Device): string {
  return d.name || d.mac || d.id;
}
