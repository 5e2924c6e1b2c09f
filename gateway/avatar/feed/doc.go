// Package feed turns events and agent states into frames: messages that tell viewers what the
// agent is doing. Viewers are the skins and avatar programs that draw the agent. The frames are
// defined by an RFC of the OpenAB project (Tier-2 of its VTuber adapter), plus extensions; see
// docs/skins.md.
//
// Frames are made from the states of agent.Board and the events of event.Bus. All viewers that are
// sent the same content share one frame. A slow viewer does not delay the others: each viewer has a
// bounded queue, the outbox, which discards outdated frames.
package feed
