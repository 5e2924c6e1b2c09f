package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"perch/agent"
	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/must"
)

// TestCharacters: the two published manifests can be imported unchanged, and used by robots and skins, also after a
// restart. A character without a brain never answers.
func TestCharacters(t *testing.T) {
	data := t.TempDir()
	c := appliancetest.Config()
	quiet := filepath.Join(data, "quiet.json")
	must.Succeed(t, os.WriteFile(quiet, []byte(`{"spec":"agent-manifest/0.2","name":"Quiet","brain":{"provider":"none"},`+
		`"voice":{"tts":{"provider":"none"},"stt":{"provider":"none"}},"meta":{"edits":{"animations":{"bow":"dance"}}},"x":[1]}`), 0o600))
	c.Characters = []config.Character{{Name: "still", Manifest: quiet}}
	h := open(t, c, data)
	h.Token("/xiaozhi/ota/", "Device-Id", "A0:B1:C2:D3:E4:F5")
	h.command("robot rename a0b1c2d3e4f5 kitchen", 0)
	const aria, leo = "../../../agent/manifest/testdata/aria.json", "../../../agent/manifest/testdata/leo.json"
	h.command("character import "+aria, 0, "aria", "browser's voice", "no brain of the provider anthropic")
	h.command("character import "+leo, 0, "coach-leo", "instructions.md", "first synthesizer of this appliance is not elevenlabs",
		"The skill wave is not on this appliance")
	h.command("character import "+leo+" --name default", 1, "household's own")
	h.command("character import "+leo+" --name still", 1, "configuration file has a character")
	if out := bare(t, "character check "+leo, 0, "wave, lookAt"); strings.Contains(out, "temperature") {
		t.Errorf("checked: %s", out)
	}
	h.command("character list", 0, "coach-leo", "still")
	h.command("character export coach-leo", 0, `"registry": "0x..."`, `"boundingBoxHeight": 1.78`)
	h.command("character export nobody", 1, "no character")
	h.command("character use kitchen nobody", 1, "no character")
	h.command("character use kitchen coach-leo", 0, "kitchen is coach-leo now")
	h.command("robot set kitchen character=coach-leo", 0, "coach-leo")
	if who := h.Characters.Who("a0b1c2d3e4f5", ""); who != "coach-leo" {
		t.Errorf("it is %s", who)
	}
	h.Stop()
	h = open(t, c, data)
	own := h.Characters.Of("a0b1c2d3e4f5")
	if own.Persona == nil || own.Persona.ID != "coach-leo" || own.Persona.MemoryTokens != 8192 ||
		*own.Persona.Brain.Temperature != 0.8 || !slices.Contains(own.Persona.Tools, "lookAt") {
		t.Fatalf("after a restart it is %+v", own)
	}
	h.command("character use kitchen still", 0)
	turn := agent.Turn{Robot: "a0b1c2d3e4f5", Conversation: "a0b1c2d3e4f5", Text: "what time is it"}
	said, err := agent.AnswerText(t.Context(), h.Mind, turn, func(agent.Reply) error { return nil })
	if err != nil || said.Text != "" {
		t.Errorf("without a brain it says %q, %v", said.Text, err)
	}
	if still := h.Characters.Of("a0b1c2d3e4f5"); !still.Speech.Mute || !still.Speech.Deaf || still.Persona.Clips["bow"] != "dance" || own.Speech.Mute || own.Speech.Deaf {
		t.Errorf("it is %+v, and the other one was %+v", still, own)
	}
	h.command("character use kitchen default", 0)
	if own := h.Characters.Of("a0b1c2d3e4f5"); own.Persona != nil || h.Characters.Who("a0b1c2d3e4f5", "") != agent.DefaultCharacter {
		t.Errorf("without one it is %+v", own)
	}
	if names := strings.Join(h.Characters.Names(), " "); names != "aria coach-leo still" {
		t.Errorf("there are %s", names)
	}
	played := agent.Turn{Session: "vtb_x"}
	h.Characters.Play(&played, "aria", "Speak as a pirate.")
	if played.Persona.Name != "Aria" || !strings.HasSuffix(played.Persona.Text, "helpful.\n\nSpeak as a pirate.") ||
		h.Characters.Who("", "vtb_x") != "aria" {
		t.Errorf("a skin's is %+v", played.Persona)
	}
}

// TestCharactersAreRemoved: an imported character that no robot and no skin uses can be removed; other characters
// cannot.
func TestCharactersAreRemoved(t *testing.T) {
	data := t.TempDir()
	c := appliancetest.Config()
	file := filepath.Join(data, "quiet.json")
	must.Succeed(t, os.WriteFile(file, []byte(`{"spec":"agent-manifest/0.2","name":"Quiet","brain":{"provider":"none"}}`), 0o600))
	c.Characters = []config.Character{{Name: "still", Manifest: file}}
	h := open(t, c, data)
	h.Token("/xiaozhi/ota/", "Device-Id", "A0:B1:C2:D3:E4:F5")
	h.command("character import "+file, 0, "quiet")
	must.Succeed(t, os.MkdirAll(filepath.Join(data, "personas"), 0o700))
	must.Succeed(t, os.WriteFile(filepath.Join(data, "personas", "cook.md"), []byte("You cook."), 0o600))
	h.command("character use a0b1c2d3e4f5 quiet", 0)
	for id, says := range map[string]string{"default": "household's character and cannot be removed", "perch": "household's character and cannot be removed", "still": "configuration file",
		"cook": "cook.md", "quiet": "perch character use a0b1c2d3e4f5 default", "nobody": "no character", "../admin-token": "nothing at this address",
		"..": "no character", "a.b": "no character"} {
		h.command("character remove "+id, 1, says)
	}
	h.command("character use a0b1c2d3e4f5 default", 0)
	turn := agent.Turn{Session: "vtb_x"}
	h.Characters.Play(&turn, "quiet", "")
	h.command("character remove quiet", 1, "a skin has talked with the model quiet")
	h.Characters.Play(&turn, "", "")
	h.command("character remove quiet", 0, "quiet is removed")
	h.command("character export quiet", 1, "no character")
	h.command("character use a0b1c2d3e4f5 quiet", 1, "no character")
	h.command("character import "+file, 0, "quiet")
}
