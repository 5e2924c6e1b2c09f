// The robots, for lists and for choices in forms.

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

// nameOf returns the name or else the MAC address of the robot with an ID.
export function nameOf(list: readonly Device[], id: string): string {
  const one = list.find((d) => d.id === id);
  return one?.name || one?.mac || id;
}

// called returns the name or else the MAC address of a robot.
export function called(d: Device): string {
  return d.name || d.mac || d.id;
}
