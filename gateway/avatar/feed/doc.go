// Package feed turns events and agent states into frames: messages that tell viewers what the
// agent is doing. A viewer is a program that shows the agent: a skin (see package skin), an avatar
// program or a relay. The frames are defined by an RFC of the OpenAB project (Tier-2 of its VTuber
// adapter), plus extensions; see docs/skins.md.
//
// Frames are made from the states of agent.Board and the events of event.Bus. Viewers that get the
// same content share one frame. A slow viewer does not delay the others: each viewer has a
// bounded queue, the outbox, which discards outdated frames.
package feed
