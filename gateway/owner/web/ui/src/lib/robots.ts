// Device is a robot in a response of the server (admin.Device).

import { get } from "./api.js";
import type { Status } from "./board.js";

export interface Device {
  id: string;
  mac: string;
  name?: string;
  persona?: string;
  character?: string;
  voice?: string;
  brain?: string;
  language?: string;
  transport?: string;
  transport_given?: string;
  board?: string;
  firmware?: string;
  address?: string;
  last_seen?: string; // missing if the robot was never here
  adopted: boolean;
  waiting?: string;
  contested?: boolean; // several clients use the MAC address, and none is adopted
  claimed?: boolean;
  claimants?: Claimant[];
  code?: string;
  left?: boolean; // a tab of a browser, which was closed
  connected: boolean;
  talking: boolean;
  state: string;
  emotion: string;
  senses?: string[];
  tools?: string[];
  status?: Status;
}

// Claimant is a client that uses the robot's MAC address (device.Claimant).
export interface Claimant {
  client: string; // Client-Id; empty if the client sends none
  address: string;
  at: string;
  bound: boolean;
}

// devices returns all robots.
export async function devices(): Promise<Device[]> {
  return (await get<Device[] | null>("api/v1/devices")) ?? [];
}

const tabLife = 12 * 3_600_000; // ms

// isHere reports whether an owner wants to see a robot. A tab of a browser that was closed is gone, unless it has a name.
export function isHere(d: Device): boolean {
  if (d.board !== "perch-page" || d.name || d.connected) return true;
  return !d.left && Date.now() - Date.parse(d.last_seen ?? "") < tabLife;
}

// nameOf returns the name of a robot, or else its ID.
export function nameOf(d: Device): string {
  return d.name || d.id;
}

// nameIn returns the name of the robot with an ID, or else the ID.
export function nameIn(list: readonly Device[], id: string): string {
  const one = list.find((d) => d.id === id);
  return one ? nameOf(one) : id;
}

// linkTo returns the link to a robot's view.
export function linkTo(id: string): string {
  return `#/robots/${encodeURIComponent(id)}`;
}
