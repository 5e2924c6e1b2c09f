// Package feed renders what the agents do for all who show them: skins at the door, and
// the avatar programs that the appliance connects to. Its frames are those of Tier-2 of
// the VTuber adapter's RFC, and extensions; docs/skins.md is for who reads them.
//
// What is sent is rendered once for all viewers, from the board and the bus. A viewer
// that does not take its frames delays no other: its outbox is bounded, and discards
// outdated frames.
package feed
