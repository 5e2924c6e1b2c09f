package reflex

import (
	"context"
	"strings"
)

// musicSlot is the slot for the name of music, in sentences and answers. It has no list: AddMusic puts the names
// into the sentences.
const musicSlot = "music"

// isMusic reports whether an intent is added by AddMusic only.
func isMusic(in intent) bool { return in.Action == "music_play" || in.Action == "music_stop" }

// AddMusic adds the sentences about music with these names. A sentence of a file that plays music and has no slot
// {music} plays the first. AddMusic must not be called once the book is in use. Without names it adds nothing.
func (b *Book) AddMusic(names []string) {
	if len(names) == 0 {
		return
	}
	for _, in := range b.music {
		var named intent
		named, in.sentences = in, nil
		for _, s := range named.sentences {
			if len(s.slots) == 0 {
				in.sentences = append(in.sentences, s)
			}
		}
		for _, name := range names {
			of := in
			of.Value, of.Answer, of.sentences = name, strings.ReplaceAll(in.Answer, "{"+musicSlot+"}", name), nil
			for _, s := range named.sentences {
				if words := b.normalize(name); len(s.slots) > 0 && len(words) > 0 {
					of.sentences = append(of.sentences, sentence{tree: withName(s.tree, newWords(words)), source: s.source})
				}
			}
			if len(of.sentences) > 0 {
				b.intents = append(b.intents, of)
			}
		}
		in.Value, in.Answer = names[0], strings.ReplaceAll(in.Answer, "{"+musicSlot+"}", names[0])
		b.intents = append(b.intents, in)
	}
}

// withName returns a tree with the words of a name in place of slots.
func withName(n, name node) node {
	each := func(nodes []node) (replaced []node) {
		for _, n := range nodes {
			replaced = append(replaced, withName(n, name))
		}
		return replaced
	}
	switch n := n.(type) {
	case slot:
		return name
	case sequence:
		return sequence(each(n))
	case choice:
		return choice(each(n))
	case option:
		return option{withName(n.node, name)}
	}
	return n
}

// withMusic returns an action that answers with a phrase if act fails, or if the robot has no music or is untrusted.
func withMusic(act func(context.Context, *command) error) action {
	return func(ctx context.Context, c *command) (string, error) {
		if c.turn.Music == nil {
			return c.book.Phrase("no_tool"), nil
		}
		switch err := act(ctx, c); {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case err != nil:
			return c.book.Phrase("music_failed"), nil
		}
		return c.intent.Answer, nil
	}
}

// playMusic plays the music with the name in the intent's value.
func playMusic(ctx context.Context, c *command) error {
	return c.report("play_music", func() error { return c.turn.Music.Play(ctx, c.intent.Value) })
}

// stopMusic stops the music.
func stopMusic(ctx context.Context, c *command) error {
	return c.report("stop_music", func() error { return c.turn.Music.Stop(ctx) })
}
