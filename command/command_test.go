package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"perch/must"
)

// TestScreen: only a terminal has colour and a width.
func TestScreen(t *testing.T) {
	env := map[string]string{}
	getenv := func(name string) string { return env[name] }
	if s := ScreenOf(&bytes.Buffer{}, getenv); s.Colour || s.Width != UnknownWidth {
		t.Errorf("a buffer is %+v", s)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	must.Succeed(t, err)
	defer file.Close()
	env["COLUMNS"] = "72"
	if s := ScreenOf(file, getenv); s.Colour || s.Width != 72 {
		t.Errorf("a file is %+v", s)
	}
}

func TestProgress(t *testing.T) {
	var out strings.Builder
	p := NewProgress(&out, 3_000_000)
	p.At(10)
	p.Finish()
	if out.Len() > 0 {
		t.Errorf("a buffer is a terminal: %q", out.String())
	}
	p.live = true
	from := p.Reader(strings.NewReader(strings.Repeat("x", 3_000_000)))
	_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{from}, make([]byte, 1_500_000))
	must.Succeed(t, err)
	p.Finish()
	if want := "\r[###############...............]  50 % of 3.0 MB\r[##############################] 100 % of 3.0 MB\n"; out.String() != want {
		t.Errorf("%q", out.String())
	}
}

// program returns the root of a program with a command of each kind. A command prints its name, its
// arguments and its flags.
func program() *cobra.Command {
	run := func(c *cobra.Command, args []string) error {
		verbose, _ := c.Flags().GetBool("verbose")
		text, _ := c.Flags().GetString("text")
		fmt.Fprintf(c.OutOrStdout(), "%s %q %v %q\n", c.CommandPath(), args, verbose, text)
		return nil
	}
	each := func(use string) *cobra.Command {
		c := &cobra.Command{Use: use, Short: "Do it", Example: "prog " + use, RunE: run}
		c.Flags().Bool("verbose", false, "print more")
		c.Flags().String("text", "", "`low|high`: the level")
		return c
	}
	root, robot := &cobra.Command{Use: "prog", Short: "Try commands"}, &cobra.Command{Use: "robot", Short: "See to robots"}
	list := each("list")
	list.SuggestFor = []string{"devices"}
	robot.AddCommand(each("say ROBOT TEXT..."), list)
	broken := each("broken")
	broken.RunE = func(*cobra.Command, []string) error { return errors.New("one\ntwo") }
	root.AddCommand(robot, each("show FILE.bin"), each("check [FILE]"), each("pick red|blue"), broken,
		Completion("prog"))
	return root
}

func TestExecute(t *testing.T) {
	for _, c := range []struct {
		args, out, err string
		code           int
	}{
		{"show a.bin --verbose", `prog show ["a.bin"] true ""`, "", 0},
		{"show -verbose -text=-x a.bin", `prog show ["a.bin"] true "-x"`, "", 0},
		{"show -text -verbose a.bin", `prog show ["a.bin"] false "-verbose"`, "", 0},
		{"show -- -verbose", `prog show ["-verbose"] false ""`, "", 0},
		{"check", `prog check [] false ""`, "", 0},
		{"robot say kitchen good morning", `prog robot say ["kitchen" "good" "morning"] false ""`, "", 0},
		{"help robot say", "usage: prog robot say ROBOT TEXT... [options]", "", 0},
		{"robot help say", "usage: prog robot say ROBOT TEXT... [options]", "", 0},
		{"robot help", "usage: prog robot COMMAND [options]", "", 0},
		{"robot help dance", "", `prog robot help: unknown command "dance"; prog robot --help lists the commands`, 2},
		{"robot say -help", "usage: prog robot say ROBOT TEXT... [options]", "", 0},
		{"show", "", "prog show: it takes FILE.bin, but 0 arguments were given", 2},
		{"check a b", "", "prog check: it takes [FILE], but 2 arguments were given", 2},
		{"robot list x", "", `prog robot list: unexpected argument "x": the command takes none`, 2},
		{"robot say kitchen", "", "prog robot say: it takes ROBOT TEXT..., but 1 argument was given", 2},
		{"pick green", "", `prog pick: "green" is not one of red, blue`, 2},
		{"completion tcsh", "", `prog completion: "tcsh" is not one of bash, zsh, fish`, 2},
		{"completion", "", "prog completion: it takes bash|zsh|fish, but 0 arguments were given", 2},
		{"completion bash zsh", "", "prog completion: it takes bash|zsh|fish, but 2 arguments were given", 2},
		{"robot -h", "usage: prog robot COMMAND [options]", "", 0},
		{"shwo", "", `prog: unknown command "shwo"; did you mean show?`, 2},
		{"sya kitchen x", "", `prog: unknown command "sya"; did you mean robot say?`, 2},
		{"dervices", "", `prog: unknown command "dervices"; did you mean robot list?`, 2},
		{"robot lost", "", `prog robot: unknown command "lost"; did you mean list?`, 2},
		{"help dance", "", `prog help: unknown command "dance"; prog --help lists the commands`, 2},
		{"show --verbos a", "", "prog show: unknown flag: --verbos; did you mean --verbose?", 2},
		{"show --text", "", "prog show: flag needs an argument: --text", 2},
		{"robot", "", "prog robot: a command is missing", 2},
		{"broken", "", "prog broken: one; two", 1},
	} {
		var out, errs strings.Builder
		name, err := Execute(t.Context(), program(), strings.Fields(c.args), &out, &errs)
		line := ""
		if err != nil {
			line = name + ": " + OneLine(err)
		}
		if line != c.err || ExitCode(err) != c.code || !strings.Contains(out.String(), c.out) || c.out == "" && out.Len() > 0 {
			t.Errorf("%s: %d %s, %q, want %d %s, %q", c.args, ExitCode(err), line, out.String(), c.code, c.err, c.out)
		}
	}
}

// TestOutputThatCannotBeWritten: a command whose output cannot be written fails.
func TestOutputThatCannotBeWritten(t *testing.T) {
	full := must.Value(os.OpenFile("/dev/full", os.O_WRONLY, 0))(t)
	defer full.Close()
	for _, args := range []string{"show a.bin", "help", "robot say --help", "completion bash"} {
		if _, err := Execute(t.Context(), program(), strings.Fields(args), full, io.Discard); !errors.Is(err, syscall.ENOSPC) || ExitCode(err) != 1 {
			t.Errorf("%s: %v", args, err)
		}
	}
	if _, err := Execute(t.Context(), program(), []string{"robot"}, full, io.Discard); ExitCode(err) != 2 {
		t.Errorf("wrong usage: %v", err)
	}
}

func TestHelp(t *testing.T) {
	for args, want := range map[string]string{
		"robot --help": `usage: prog robot COMMAND [options]

See to robots.

Commands:
  list  Do it
  say   Do it

prog robot COMMAND --help shows the options of a command. Exit codes: 0 done, 1 failed, 2 wrong usage.
`,
		"pick --help": `usage: prog pick red|blue [options]

Do it.

Options:
  -h, --help            help for pick
      --text low|high   low|high: the level
      --verbose         print more

Examples:
  prog pick red|blue
`,
	} {
		var out strings.Builder
		if _, err := Execute(t.Context(), program(), strings.Fields(args), &out, &out); err != nil || out.String() != want {
			t.Errorf("%v\n%s\nwant\n%s", err, out.String(), want)
		}
	}
}

// TestManual: the manual contains the commands except the hidden ones.
func TestManual(t *testing.T) {
	const want = `.SS robot say
.B prog robot say
.I ROBOT
.I TEXT...
[options]
.PP
Do it.
.TP
.BI "\-\-text " "low|high"
the level
.TP
.B \-\-verbose
print more
.PP
.EX
.RS
prog say ROBOT TEXT...
.RE
.EE
`
	if page := Manual(program()); !strings.Contains(page, want) {
		t.Error(page)
	}
}

// TestComplete requests completions as the shells' scripts do. The number after the colon is the directive to the
// shell: 4 for no file names, 0 for file names, 16 for folders.
func TestComplete(t *testing.T) {
	bin := t.TempDir()
	devices := `#!/bin/sh
echo '{"robots":[{"id":"a0b1c2d3e4f5","name":"kitchen"}]}'
`
	must.Succeed(t, os.WriteFile(filepath.Join(bin, "perch"), []byte(devices), 0o700))
	t.Setenv("PATH", bin)
	for args, want := range map[string]string{
		"robot ":           "list say :4",
		"robot say ":       "a0b1c2d3e4f5 kitchen :4",
		"robot say x y ":   ":4",
		"show ":            ":0",
		"pick ":            "red blue :4",
		"pick red ":        ":4",
		"pick --text ":     "low high :4",
		"completion ":      "bash zsh fish :4",
		"show --dir ":      ":16",
		"show --rate ":     ":4",
		"show --verbose -": "--dir --help --rate --text -h :4",
	} {
		root := program()
		c, _, _ := root.Find([]string{"show"})
		c.Flags().String("dir", "", "`DIR` of the data")
		c.Flags().Int("rate", 0, "samples a second")
		var out strings.Builder
		if _, err := Execute(t.Context(), root, append([]string{cobra.ShellCompNoDescRequestCmd}, strings.Split(args, " ")...), &out,
			io.Discard); err != nil {
			t.Error(err)
		}
		offered := strings.Fields(out.String())
		if strings.HasSuffix(args, "-") {
			slices.Sort(offered[:len(offered)-1])
		}
		if got := strings.Join(offered, " "); got != want {
			t.Errorf("%s<tab>: %q, want %q", args, got, want)
		}
	}
}
