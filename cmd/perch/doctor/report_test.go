package doctor

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	openaibrain "perch/agent/openai"
	"perch/agent/reflex"
	"perch/agent/thinker"
	"perch/cmd/perch/config"
	"perch/cmd/perch/drivers"
	"perch/cmd/perch/engines"
	"perch/command/commandtest"
	"perch/must"
	"perch/store/archive"
	"perch/voice"
	"perch/voice/espeak"
	"perch/voice/wyoming"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == espeak.ServeCommand { // the engine espeak starts this binary with the command
		if espeak.Serve(os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// linesOf returns the lines that Report prints for findings.
func linesOf(t *testing.T, findings ...finding) (lines []string) {
	t.Helper()
	var out strings.Builder
	(&report{Findings: findings}).Report(&out)
	lines = append(lines, strings.Split(strings.TrimSpace(out.String()), "\n")...)
	return lines
}

// TestTheReportBeginsWithTheFaults: the report has a section of faults and one of other findings, a line
// for each finding, and aligned columns.
func TestTheReportBeginsWithTheFaults(t *testing.T) {
	lines := linesOf(t,
		finding{Ok: true, Part: "clock", Note: "it is noon"},
		finding{Part: "recognizer wyoming 2", Note: "it is away;\nswitch it on"},
		finding{Ok: true, warn: true, Part: "secrets", Note: "others can read it; chmod o-rwx it"},
		finding{Part: "mqtt", Note: "no broker; start one"})
	want := []string{
		"2 faults, each with its cure:",
		"FAIL  recognizer wyoming 2  it is away; switch it on",
		"FAIL  mqtt                  no broker; start one",
		"",
		"The rest works:",
		"WARN  secrets               others can read it; chmod o-rwx it",
		"ok    clock                 it is noon",
	}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("it is\n%s\nand should be\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if lines := linesOf(t, finding{Part: "mqtt", Note: "x"}); lines[0] != "1 fault, with its cure:" || len(lines) != 2 {
		t.Errorf("it is %q", lines)
	}
	if lines := linesOf(t, finding{Ok: true, Part: "mqtt", Note: "x"}); lines[0] != "Everything works:" || len(lines) != 2 {
		t.Errorf("it is %q", lines)
	}
}

// TestAMemberOfTheGroupFindsNoFault: files that this user may not read are no fault. The report says that
// they were not checked.
func TestAMemberOfTheGroupFindsNoFault(t *testing.T) {
	if os.Geteuid() == 0 { // root may read everything, so the test runs again as another user
		commandtest.RunAsNobody(t, "TestAMemberOfTheGroupFindsNoFault")
		return
	}
	d := Examined(t)
	d.newDatabase(t).Close()
	key := d.write(t, filepath.Join(d.Data, "brain"), "k", 0o600)
	for path, mode := range map[string]os.FileMode{key: 0, archive.DatabasePath(d.Data): 0, d.Data: 0o550} {
		must.Succeed(t, os.Chmod(path, mode))
	}
	t.Cleanup(func() { _ = os.Chmod(d.Data, 0o700) })
	d.service = &config.Account{Name: "perch"} // its user ID is 0, so it may access all files
	d.Config.Brains = append(d.Config.Brains, config.Engine{Kind: "openai",
		Options: &thinker.BrainKeys[openaibrain.Options]{Model: openaibrain.Options{URL: "http://127.0.0.1:9/v1", Model: "m", KeyFile: key}}})
	d.Config.MQTT.Broker, d.Config.MQTT.PasswordFile = "mqtt://127.0.0.1:9", key
	d.checkDisk()
	d.CheckDatabase()
	d.checkEngines(t.Context())
	d.checkMQTT(t.Context())
	said := map[string]string{}
	for _, f := range d.Findings {
		said[f.Part] = f.Note
		if !f.Ok {
			t.Errorf("a fault that is none: %+v", f)
		}
	}
	for _, part := range []string{"database", "engines", "mqtt"} {
		if !strings.Contains(said[part], "sudo perch doctor") {
			t.Errorf("of %s it says %q", part, said[part])
		}
	}
	d.Findings, d.service = nil, nil
	if d.checkDisk(); d.Findings[0].Ok {
		t.Errorf("data that nobody can write: %+v", d.Findings[0])
	}
}

// TestADamagedFirstPageLosesNoRecords checks that, if one of the two first pages of the database is damaged, the doctor
// does not say that the file is put aside.
func TestADamagedFirstPageLosesNoRecords(t *testing.T) {
	d := Examined(t)
	must.Succeed(t, d.newDatabase(t).Close())
	file := must.Value(os.OpenFile(archive.DatabasePath(d.Data), os.O_RDWR, 0))(t)
	must.Value(file.WriteAt([]byte{0xff, 0xff, 0xff, 0xff}, int64(os.Getpagesize())+40))(t)
	must.Succeed(t, file.Close())
	d.CheckDatabase()
	if f := d.Findings[0]; f.Ok || !strings.Contains(f.Note, "perhaps the last change") || strings.Contains(f.Note, "aside") {
		t.Errorf("it says %+v", f)
	}
}

// TestStateAndTrialOfAnEngineShareALine: if the appliance reports a fault of an engine and the trial of the
// engine works, one line contains both.
func TestStateAndTrialOfAnEngineShareALine(t *testing.T) {
	d := Examined(t)
	d.Config.Speech.Recognizers, d.Config.Brains = nil, []config.Engine{{Kind: "reflex", Options: &reflex.Keys{}}}
	d.answers(t, `{"version":"`+d.Version+`","started":"2026-11-01T00:00:00Z","robots":1,"parts":[`+
		`{"name":"brain reflex","ok":false,"note":"it hung"},{"name":"brain gone","ok":true,"note":"as it was started"},`+
		`{"name":"language","ok":true,"note":"no recognizer supports \"de\""}]}`)
	d.checkAppliance(t.Context())
	d.checkEngines(context.WithoutCancel(t.Context()))
	found := map[string][]finding{}
	for _, f := range d.Findings {
		found[f.Part] = append(found[f.Part], f)
	}
	brain := found["brain reflex"]
	if len(brain) != 1 || !brain[0].Ok || !brain[0].warn || !strings.Contains(brain[0].Note, "it hung") ||
		!strings.Contains(brain[0].Note, "It is ") {
		t.Errorf("it found %+v", brain)
	}
	if robots := found["language"]; len(robots) != 1 || !robots[0].Ok || !robots[0].warn {
		t.Errorf("of a robot's language it says %+v", robots)
	}
	if len(found["brain gone"]) != 1 || !strings.Contains(found["appliance"][0].Note, "1 robot known, 0 of them reachable") {
		t.Errorf("it found %+v", d.Findings)
	}
}

// mishearing is a recognizer whose transcript is always its value.
type mishearing string

func (mishearing) Name() string { return "mishearing" }

func (m mishearing) Recognize(context.Context, *voice.Utterance, voice.Options) (voice.Transcript, error) {
	return voice.Transcript{Text: string(m)}, nil
}

// TestAWrongTranscriptIsNoSuccess: a recognizer that returns other words than were spoken is a
// warning with a remedy.
func TestAWrongTranscriptIsNoSuccess(t *testing.T) {
	for words, mark := range map[string]string{"What time is it?": "ok", "what dime is it": "WARN", "": "WARN"} {
		d := Examined(t)
		e := must.Value(engines.New(nil, d.Config, drivers.Brain{}, nil, nil, slog.New(slog.DiscardHandler)))(t)
		t.Cleanup(e.Close)
		i := slices.IndexFunc(e.All, func(n *engines.Engine) bool { return n.Recognizer != nil })
		e.All[i].Recognizer = mishearing(words)
		tried := trial{Examination: d, sample: "what time is it", spoken: []int16{0}, working: map[string]stage{}}
		tried.run(t.Context(), e.All[i])
		if f := d.Findings[0]; f.mark() != mark || strings.Contains(f.Note, "larger model") != f.warn {
			t.Errorf("%q is %s: %s", words, f.mark(), f.Note)
		}
	}
}

// TestARecognizerOfAnotherLanguage: a recognizer that does not support the configured language is no fault. If no
// recognizer supports the language, there is one warning with a remedy.
func TestARecognizerOfAnotherLanguage(t *testing.T) {
	for also, want := range map[string]string{
		"":                  "language: no recognizer supports \"de\": sphinx supports only English; add one of kind wyoming",
		"tcp://127.0.0.1:9": "recognizer sphinx: is not used for de: ",
	} {
		d := Examined(t)
		d.Config.Language, d.Config.Brains = "de", []config.Engine{{Kind: "none", Options: &struct{}{}}}
		if also != "" {
			d.Config.Speech.Recognizers = append(d.Config.Speech.Recognizers, config.Engine{Kind: "wyoming", Options: &wyoming.RecognizerKeys{URL: also}})
		}
		d.CheckSecrets()
		d.checkEngines(t.Context())
		var said []string
		for _, f := range d.Findings {
			if f.Part == "language" || f.Part == "recognizer sphinx" {
				said = append(said, f.Part+": "+f.Note)
				if !f.Ok || f.warn != (also == "") {
					t.Errorf("%+v", f)
				}
			}
		}
		if len(said) != 1 || !strings.HasPrefix(said[0], want) {
			t.Errorf("it says %q, not %q", said, want)
		}
	}
}
