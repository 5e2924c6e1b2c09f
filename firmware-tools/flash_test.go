package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"perch/command"
	"perch/firmware-tools/romloader"
	"perch/firmware-tools/simrobot"
	"perch/ota/espimage"
)

// terminal returns a serial port with a robot at its other end. The robot is in its
// loader, because a pseudo terminal has no lines for a reset.
func terminal(t *testing.T, rom *simrobot.ROM, unplug ...*func()) (name string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if errors.Is(err, syscall.ENODEV) || errors.Is(err, fs.ErrNotExist) {
		t.Skip("this machine has no pseudo terminals (/dev/pts is not mounted): ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	control := must(master.SyscallConn())(t)
	ioctl := func(request uintptr, value *uint32) {
		err := control.Control(func(fd uintptr) {
			if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(unsafe.Pointer(value))); errno != 0 {
				t.Fatal(errno)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var number, unlocked uint32
	ioctl(syscall.TIOCSPTLCK, &unlocked)
	ioctl(syscall.TIOCGPTN, &number)
	name = "/dev/pts/" + strconv.Itoa(int(number))
	kept := must(os.OpenFile(name, os.O_RDWR|syscall.O_NOCTTY, 0))(t) // without one that is open, the other end has nothing to read
	for _, u := range unplug {
		*u = func() { master.Close() }
	}
	served := make(chan struct{})
	go func() { defer close(served); _ = rom.Serve(master) }()
	t.Cleanup(func() { kept.Close(); master.Close(); <-served })
	return name
}

// stackChan is a robot in its loader, with firmware 1.2.3.
func stackChan() simrobot.ROMOptions {
	return simrobot.ROMOptions{Chip: 9, Stuck: true, Flash: simrobot.Flash(simrobot.Image("1.2.3", 0)), EFuse: map[uint32]uint32{0x60007050: 2 << 18}}
}

// filled returns an application with random content.
func filled(version string, size int) []byte {
	b := simrobot.Image(version, size)
	b = b[:len(b)-32]
	b = b[:len(b)-len(b)%16]
	random := rand.New(rand.NewPCG(1, 2))
	for n := 32 + 256; n < len(b)-16; n++ {
		b[n] = byte(random.Uint32())
	}
	return simrobot.Seal(b[:32+max(256, size)])
}

func part(flash []byte, at, size int) []byte { return flash[at : at+size] }

// TestFlash: an application goes to the slot that the robot starts. The rest of the
// flash does not change.
func TestFlash(t *testing.T) {
	rom := simrobot.NewROM(stackChan())
	port, app := terminal(t, rom), filled("1.3.0", 150_000)
	before, file := rom.Flash(), writeFile(t, "app.bin", app)
	code, out, errs := tools("flash", "--dry-run", file, "--port", port)
	if code != 0 || errs != "" || rom.Writes() != 0 || !bytes.Equal(rom.Flash(), before) {
		t.Fatalf("exit %d %s%s", code, out, errs)
	}
	for _, line := range []string{"chip      esp32s3, revision 0.2, 4 MB of flash", "starts    ota_0: stack-chan 1.2.3",
		"file      stack-chan 1.3.0 for esp32s3, 150",
		"write     ota_0: 0x20000 to 0x44", "nothing is written", "restart   the robot yourself"} {
		if !strings.Contains(out, line) {
			t.Errorf("it does not say %q:\n%s", line, out)
		}
	}
	code, out, errs = tools("flash", file, "--port", port)
	after := rom.Flash()
	if code != 0 || errs != "" || !strings.Contains(out, "verified  its flash holds what was written") {
		t.Fatalf("exit %d %s%s", code, out, errs)
	}
	if !bytes.Equal(part(after, 0x20000, len(app)), app) || !bytes.Equal(after[:0x20000], before[:0x20000]) ||
		!bytes.Equal(after[0x120000:], before[0x120000:]) {
		t.Error("the flash holds something else")
	}
	code, out, errs = tools("flash", file, "--port", port, "--at", "ota_1", "--boot")
	after = rom.Flash()
	if code != 0 || errs != "" || !strings.Contains(out, "write     otadata: 0xd000 to 0xf000") ||
		!strings.Contains(out, "note      the robot then starts ota_1") {
		t.Fatalf("exit %d %s%s", code, out, errs)
	}
	if !bytes.Equal(part(after, 0x120000, len(app)), app) || after[0xD000] != 2 || !bytes.Equal(after[:0xD000], before[:0xD000]) {
		t.Errorf("otadata %x", after[0xD000:0xD020])
	}
	if _, out, _ = tools("flash", "--dry-run", file, "--port", port); !strings.Contains(out, "starts    ota_1: stack-chan 1.3.0") {
		t.Error(out)
	}
}

// TestFlashSettings: a robot's settings are read, changed and written back.
func TestFlashSettings(t *testing.T) {
	rom := simrobot.NewROM(stackChan())
	port, dir := terminal(t, rom), t.TempDir()
	fresh, file := filepath.Join(dir, "new.bin"), filepath.Join(dir, "nvs.bin")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"nvs", fresh, "--new", "--set", "wifi/ssid=Home"}, 0, "1 items"},
		{[]string{"flash", fresh, "--port", port}, 1, "--all allows it"},
		{[]string{"flash", fresh, "--port", port, "--all"}, 0, "verified"},
		{[]string{"flash", "--save", "--at", "nvs", file, "--port", port}, 0, "16384 bytes of nvs, from 0x9000 on"},
		{[]string{"flash", "--save", "--at", "nvs", file, "--port", port}, 1, "is there already"},
		{[]string{"nvs", file}, 0, "wifi/ssid=string:Home"},
		{[]string{"flash", "--save", "--at", "fonts", file + "2", "--port", port}, 1, "no partition fonts, but: nvs, otadata,"},
	} {
		if code, out, errs := tools(c.args...); code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("%q: exit %d %s%s", c.args, code, out, errs)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Error("what holds passwords is for everybody")
	}
}

// TestFlashCutShort: the robot must be flashed again, and the same command
// goes on where the first one stopped.
func TestFlashCutShort(t *testing.T) {
	o := stackChan()
	ctx, cancel := context.WithCancel(t.Context())
	o.Forget = func(at int64) bool {
		if at == 0x20000+40_000 {
			cancel()
		}
		return false
	}
	rom := simrobot.NewROM(o)
	port, file := terminal(t, rom), writeFile(t, "app.bin", filled("1.3.0", 250_000))
	_, err := command.Execute(ctx, commands(), []string{"flash", file, "--port", port}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "interrupted: write the flash at 0x20000: you stopped it; ota_0 is half written") ||
		strings.Contains(err.Error(), "context") {
		t.Fatal(err)
	}
	if code, out, errs := tools("flash", file, "--port", port); code != 0 || !strings.Contains(out, "starts    ota_0: stack-chan 1.3.0") ||
		!strings.Contains(out, "verified") {
		t.Errorf("exit %d %s%s", code, out, errs)
	}
}

// TestFlashRefused, for causes in the robot.
func TestFlashRefused(t *testing.T) {
	file := writeFile(t, "app.bin", simrobot.Image("1.3.0", 0))
	for want, change := range map[string]func(o *simrobot.ROMOptions){
		"encrypted":              func(o *simrobot.ROMOptions) { o.Crypt = 1 },
		"secure boot":            func(o *simrobot.ROMOptions) { o.Security = 1 },
		"secure download mode":   func(o *simrobot.ROMOptions) { o.Security = 4 },
		"the robot has esp32c61": func(o *simrobot.ROMOptions) { o.Chip = 20 },
		"built for esp32s3, and the robot has esp32c3": func(o *simrobot.ROMOptions) { o.Chip = 5 },
		"no partition table, or a damaged one":         func(o *simrobot.ROMOptions) { clear(o.Flash) },
		"speaks of 2752512 bytes of flash":             func(o *simrobot.ROMOptions) { o.Flash = o.Flash[:2<<20] },
	} {
		o := stackChan()
		change(&o)
		rom := simrobot.NewROM(o)
		code, out, errs := tools("flash", file, "--port", terminal(t, rom))
		if code != 1 || !strings.Contains(errs, want) || rom.Writes() != 0 {
			t.Errorf("%s: exit %d %s%s", want, code, out, errs)
		}
	}
}

// TestFlashUnplugged in the middle of a write.
func TestFlashUnplugged(t *testing.T) {
	o := stackChan()
	unplug := func() {}
	o.Forget = func(at int64) bool { unplug(); return false }
	rom := simrobot.NewROM(o)
	port := terminal(t, rom, &unplug)
	code, _, errs := tools("flash", writeFile(t, "app.bin", simrobot.Image("1.3.0", 9000)), "--port", port)
	if code != 1 || !strings.Contains(errs, "the port is gone: the robot was unplugged, or has lost power; ota_0 is half written, and must be "+
		"flashed again") {
		t.Errorf("exit %d %s", code, errs)
	}
}

// TestFlashPort: a wrong port or file is refused soon, with its cure.
func TestFlashPort(t *testing.T) {
	good, bad := writeFile(t, "app.bin", simrobot.Image("1.3.0", 0)), writeFile(t, "bad.bin", []byte("<html>"))
	damaged := simrobot.Image("1.3.0", 2000)
	damaged[400] ^= 1
	cut := simrobot.Image("1.3.0", 2000)
	check(t, "flash", []call{
		{[]string{good, "--port", filepath.Join(t.TempDir(), "ttyACM0")}, 1, "there is no such port: is the robot plugged in?"},
		{[]string{good, "--port", good}, 1, "it is not a serial port"},
		{[]string{bad}, 1, "cannot be written to a robot"},
		{[]string{writeFile(t, "empty.bin", nil)}, 1, "the file is empty"},
		{[]string{writeFile(t, "damaged.bin", damaged)}, 1, "damaged.bin would not start: the image's checksum"},
		{[]string{writeFile(t, "cut.bin", cut[:1500])}, 1, "it was not copied whole"},
		{[]string{good, good}, 2, "one file, not 2"},
		{[]string{good, "--baud", "1"}, 2, "--baud 1"},
		{[]string{"--save", good}, 2, "--save goes with --at"},
		{[]string{"--save", "--at", "nvs", good}, 1, "does not replace a copy"},
		{[]string{"--help"}, 0, ""},
	})
}

func TestChoosePort(t *testing.T) {
	robot, other := romloader.Found{Name: "/dev/ttyACM0", Robot: true, USB: true}, romloader.Found{Name: "/dev/ttyACM1", Robot: true,
		Device: "Espressif"}
	stick, adapter := romloader.Found{Name: "/dev/ttyUSB0", Device: "Silicon Labs CP2102N"}, romloader.Found{Name: "/dev/ttyUSB1"}
	for _, c := range []struct {
		ports []romloader.Found
		named string
		want  romloader.Found
		err   string
	}{
		{nil, "", romloader.Found{}, "no robot is plugged in"},
		{[]romloader.Found{robot}, "", robot, ""},
		{[]romloader.Found{stick}, "", stick, ""},
		{[]romloader.Found{robot, stick}, "", robot, ""}, // a bridge may be a home's Zigbee stick
		{[]romloader.Found{robot, stick}, "/dev/ttyUSB0", stick, ""},
		{[]romloader.Found{robot, other, stick}, "", romloader.Found{}, "one of: /dev/ttyACM0; /dev/ttyACM1 Espressif"},
		{[]romloader.Found{stick, adapter}, "", romloader.Found{}, "one of: /dev/ttyUSB0 Silicon Labs CP2102N; /dev/ttyUSB1"},
		{nil, "/dev/ttyS9", romloader.Found{Name: "/dev/ttyS9"}, ""},
	} {
		got, err := choosePort(c.ports, c.named)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.HasSuffix(err.Error(), c.err) &&
			!strings.Contains(err.Error(), c.err) {
			t.Errorf("%v %q: %v %v", c.ports, c.named, got, err)
		}
	}
}

// bigAssets returns assets of more than a sector.
func bigAssets() []byte {
	b := append(assetFile(), make([]byte, 5000)...)
	binary.LittleEndian.PutUint32(b[8:], uint32(len(b)-12))
	return b
}

// plannedRobots returns robots as they are before a plan: an ordinary one, one
// without a partition table, one with other firmware, one with a large flash, and
// one with a single slot.
func plannedRobots(t *testing.T) (robot, blank, foreign, big, single flashed) {
	t.Helper()
	table := must(espimage.ParseTable(simrobot.PartitionTable()))(t)
	slot, _ := table.Named("ota_0")
	robot = flashed{Robot: romloader.Robot{Chip: 9, Revision: 2, Size: 4 << 20}, table: table, starts: slot, app: espimage.App{Project: "stack-chan"}}
	blank = robot
	blank.table, blank.starts, blank.app, blank.noTable = nil, espimage.Partition{}, espimage.App{}, errors.New("there is no partition table")
	foreign = robot
	foreign.app.Project = "xiaozhi"
	big = robot
	big.Size, big.table = 32<<20, slices.Clone(table)
	big.table[5].Offset = 16<<20 - 4096
	single = robot
	single.table = espimage.Table{table[0], table[3]}
	return robot, blank, foreign, big, single
}

// planText returns the writes of a plan and its first note, or its error.
func planText(p flashPlan, err error) string {
	if err != nil {
		return err.Error()
	}
	var writes []string
	for _, w := range p.writes {
		writes = append(writes, w.where+" 0x"+strconv.FormatInt(w.at, 16))
	}
	text := strings.Join(writes, ", ")
	if len(p.notes) > 0 {
		text += "; " + p.notes[0]
	}
	return text
}

// TestFlashPlan: the destination of each kind of file, and the refusals.
func TestFlashPlan(t *testing.T) {
	robot, blank, foreign, big, single := plannedRobots(t)
	app := simrobot.Image("1.3.0", 0)
	large := simrobot.Image("1.3.0", 1<<20)
	whole := simrobot.Flash(app)[:0x30000]
	broken := bytes.Clone(whole)
	broken[0x20000+100] ^= 1
	loader := simrobot.Flash(nil)[:0x400]
	assets := assetFile()
	for _, c := range []struct {
		name  string
		robot flashed
		file  []byte
		flags flashFlags
		want  string // the writes, or the error
	}{
		{"app", robot, app, flashFlags{}, "ota_0 0x20000"},
		{"app", robot, app, flashFlags{boot: true}, "ota_0 0x20000, otadata 0xd000"},
		{"app", robot, app, flashFlags{at: "ota_1"}, "ota_1 0x120000; the robot goes on to start ota_0"},
		{"app", robot, app, flashFlags{at: "0x120000"}, "ota_1 0x120000; the robot goes on to start ota_0"},
		{"app", robot, app, flashFlags{at: "1179648", boot: true}, "ota_1 0x120000, otadata 0xd000; the robot then starts ota_1"},
		{"app", robot, app, flashFlags{at: "0x130000"}, "in the middle of ota_1"},
		{"app", robot, app, flashFlags{at: "0x10000"}, "there is no partition at 0x10000"},
		{"app", robot, app, flashFlags{at: "-4096"}, "there is no partition at"},
		{"app", robot, app, flashFlags{at: "nvs"}, "--all allows it"},
		{"app", robot, app, flashFlags{at: "nvs", all: true}, "nvs is not one"},
		{"app", robot, app, flashFlags{at: "0"}, "written to the boot loader, on which"},
		{"app", robot, app, flashFlags{at: "0", all: true}, "the boot loader is not one"},
		{"app", robot, app, flashFlags{at: "0x8000", all: true}, "the partition table is not one"},
		{"app", robot, app, flashFlags{at: "assets"}, "assets is not one"},
		{"app", robot, large, flashFlags{}, "ota_0 takes 1048576: nothing is written past its end"},
		{"app", single, app, flashFlags{boot: true}, "ota_0 0x20000"},
		{"app", foreign, app, flashFlags{}, "the robot has firmware of the project xiaozhi"},
		{"app", foreign, app, flashFlags{board: "m5stack-stackchan"}, "ota_0 0x20000"},
		{"app", blank, app, flashFlags{}, "there is no partition table"},
		{"app", blank, app, flashFlags{at: "ota_0"}, "there is no partition table"},
		{"app", blank, app, flashFlags{at: "0x20000"}, "there is no partition table"},
		{"whole", robot, whole, flashFlags{}, "--all allows it"},
		{"whole", robot, whole, flashFlags{all: true}, "the whole flash 0x0; nvs goes with it"},
		{"whole", blank, whole, flashFlags{all: true}, "the whole flash 0x0; nvs goes with it"},
		{"whole", robot, whole, flashFlags{all: true, at: "0"}, "the whole flash 0x0; nvs goes with it"},
		{"whole", robot, whole, flashFlags{all: true, at: "ota_0"}, "belongs to 0"},
		{"whole", robot, broken, flashFlags{all: true}, "would not start: in the partition ota_0"},
		{"assets", robot, assets, flashFlags{}, "assets 0x220000"},
		{"assets", robot, assets, flashFlags{at: "ota_1"}, "not in ota_1"},
		{"assets", big, assets, flashFlags{}, "assets 0xfff000"},
		{"assets", big, bigAssets(), flashFlags{}, "beyond the first 16 MB"},
		{"assets", single, assets, flashFlags{}, "no partition assets"},
		{"table", robot, simrobot.PartitionTable(), flashFlags{}, "--all allows it"},
		{"table", robot, simrobot.PartitionTable(), flashFlags{all: true}, "the partition table 0x8000"},
		{"table", robot, simrobot.PartitionTable(), flashFlags{at: "ota_1"}, "belongs to 0x8000"},
		{"loader", robot, loader, flashFlags{}, "--all allows it"},
		{"loader", robot, loader, flashFlags{all: true}, "the boot loader 0x0"},
		{"loader", robot, loader, flashFlags{at: "ota_1"}, "a boot loader belongs to 0x0"},
	} {
		file, err := readFlashFile(writeFile(t, c.name, c.file))
		if err != nil {
			t.Fatal(c.name, err)
		}
		p, err := c.flags.plan(c.robot, file)
		text := planText(p, err)
		isError := !strings.Contains(c.want, " 0x") || strings.HasPrefix(c.want, "there is") || strings.Contains(c.want, "belongs to 0x")
		if !strings.Contains(text, c.want) || err == nil && !strings.HasPrefix(text, c.want) || isError != (err != nil) {
			t.Errorf("%s %+v: %s", c.name, c.flags, text)
		}
	}
}
