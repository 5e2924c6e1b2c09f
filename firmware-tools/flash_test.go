package main

import (
	"bytes"
	"context"
	"crypto/md5" // the format of partition tables requires MD5
	_ "embed"
	"encoding/binary"
	"errors"
	"io"
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
	"perch/firmware-tools/simrobot"
	"perch/must"
	"perch/ota/espimage"
	"perch/ota/espimage/espimagetest"
)

// fakeRobot is the state of the robot that testdata/esptool simulates. The folder dir contains the
// robot's flash, the name of its chip, and the command lines that esptool has received.
type fakeRobot struct {
	t   *testing.T
	dir string
}

// fakePort is a device that checkPort accepts. testdata/esptool does not open it.
const fakePort = "/dev/null"

//go:embed testdata/esptool
var fakeESPTool []byte

// stackChan returns a robot with firmware 1.2.3, and sets PATH so that findESPTool finds
// testdata/esptool.
func stackChan(t *testing.T) fakeRobot {
	t.Helper()
	bin, r := t.TempDir(), fakeRobot{t, t.TempDir()}
	must.Succeed(t, os.WriteFile(filepath.Join(bin, "esptool"), fakeESPTool, 0o700))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("FAKE_ROBOT", r.dir)
	t.Setenv("TMPDIR", t.TempDir()) // so that a test can check that no temporary files remain
	r.put("flash", factoryFlash(simrobot.Image("1.2.3", 0)))
	r.put("chip", []byte("ESP32-S3"))
	return r
}

// factoryFlash returns the flash of a new robot with 4 MB: the header of a boot loader for the
// ESP32-S3, a partition table like the Xiaozhi firmware's but smaller, and app in the partition
// ota_0.
func factoryFlash(app []byte) []byte {
	out := bytes.Repeat([]byte{0xFF}, 4<<20)
	copy(out, []byte{0xE9, 3, 2, 0x2F, 0x1C, 0x5A, 0x37, 0x40, 0xEE, 0, 0, 0, 9, 0, 0, 0, 0, 0xFF, 0xFF})
	copy(out[0x8000:], partitionTable())
	copy(out[0x20000:], app)
	return out
}

// partitionTable returns the partition table of factoryFlash, in the format of ESP-IDF's
// gen_esp32part.py.
func partitionTable() []byte {
	var out []byte
	for _, p := range []struct {
		name          string
		kind, subtype byte
		at, size      uint32
	}{
		{"nvs", 1, 2, 0x9000, 0x4000}, {"otadata", 1, 0, 0xD000, 0x2000}, {"phy_init", 1, 1, 0xF000, 0x1000},
		{"ota_0", 0, 0x10, 0x20000, 0x100000}, {"ota_1", 0, 0x11, 0x120000, 0x100000}, {"assets", 1, 0x82, 0x220000, 0x80000},
	} {
		entry := append(make([]byte, 0, 32), 0xAA, 0x50, p.kind, p.subtype)
		entry = binary.LittleEndian.AppendUint32(entry, p.at)
		entry = binary.LittleEndian.AppendUint32(entry, p.size)
		entry = append(entry, p.name...)
		out = append(out, entry[:32]...)
	}
	sum := md5.Sum(out)
	out = append(append(out, 0xEB, 0xEB), bytes.Repeat([]byte{0xFF}, 14)...)
	out = append(out, sum[:]...)
	return append(out, bytes.Repeat([]byte{0xFF}, 0xC00-len(out))...)
}

func (r fakeRobot) put(name string, data []byte) {
	r.t.Helper()
	must.Succeed(r.t, os.WriteFile(filepath.Join(r.dir, name), data, 0o600))
}

func (r fakeRobot) flash() []byte { return must.Value(os.ReadFile(filepath.Join(r.dir, "flash")))(r.t) }

// commands returns the command lines that esptool has received since the last call of commands.
func (r fakeRobot) commands() []string {
	name := filepath.Join(r.dir, "commands")
	text, _ := os.ReadFile(name) // the file does not exist if esptool has not run
	_ = os.Remove(name)
	return strings.FieldsFunc(string(text), func(c rune) bool { return c == '\n' })
}

// filled returns an application whose segment has size bytes (at least 256) and contains random bytes
// after the description of the application.
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

// TestFlash checks that an application is written to the partition that the robot starts, or to the
// partition of --at, and that the rest of the flash does not change. It also checks the arguments of
// esptool.
func TestFlash(t *testing.T) {
	robot, app := stackChan(t), filled("1.3.0", 150_000)
	before, file := robot.flash(), writeFile(t, "app.bin", app)
	code, out, errs := tools("robot", "flash", "--dry-run", file, "--port", fakePort)
	if code != 0 || errs != "" || !bytes.Equal(robot.flash(), before) {
		t.Fatalf("exit %d %s%s", code, out, errs)
	}
	for _, line := range []string{"chip      esp32s3, revision 0.2, 4 MB of flash", "starts    ota_0: stack-chan 1.2.3",
		"file      stack-chan 1.3.0 for esp32s3, 150",
		"write     ota_0: 0x20000 to 0x44", "nothing is written"} {
		if !strings.Contains(out, line) {
			t.Errorf("it does not say %q:\n%s", line, out)
		}
	}
	const first = "--chip auto --port /dev/null --before default_reset --after "
	const then = "--chip esp32s3 --port /dev/null --before default_reset --after "
	want := []string{first + "no_reset --no-stub flash_id", then + "no_reset --no-stub get_security_info",
		then + "no_reset --no-stub --baud 460800 read_flash 32768 3072 READ", then + "no_reset --no-stub --baud 460800 read_flash 53248 4128 READ",
		then + "no_reset --no-stub --baud 460800 read_flash 131072 288 READ", then + "hard_reset --no-stub read_mac"}
	if got := robot.commands(); !slices.Equal(got, want) {
		t.Errorf("esptool was given\n%s", strings.Join(got, "\n"))
	}
	code, out, errs = tools("robot", "flash", file, "--port", fakePort, "--baud", "115200")
	after := robot.flash()
	if code != 0 || errs != "" || !strings.Contains(out, "verified  the robot's flash contains what was written") {
		t.Fatalf("exit %d %s%s", code, out, errs)
	}
	if !bytes.Equal(part(after, 0x20000, len(app)), app) || !bytes.Equal(after[:0x20000], before[:0x20000]) ||
		!bytes.Equal(after[0x120000:], before[0x120000:]) {
		t.Error("the flash holds something else")
	}
	if got := robot.commands(); len(got) != 7 || got[5] != then+"no_reset --no-stub --baud 115200 write_flash 131072 WRITE" || got[6] != want[5] {
		t.Errorf("esptool was given\n%s", strings.Join(got, "\n"))
	}
	code, out, errs = tools("robot", "flash", file, "--port", fakePort, "--at", "ota_1", "--boot")
	after = robot.flash()
	if code != 0 || errs != "" || !strings.Contains(out, "write     otadata: 0xd000 to 0xf000") ||
		!strings.Contains(out, "note      the robot then starts ota_1") {
		t.Fatalf("exit %d %s%s", code, out, errs)
	}
	if !bytes.Equal(part(after, 0x120000, len(app)), app) || after[0xD000] != 2 || !bytes.Equal(after[:0xD000], before[:0xD000]) {
		t.Errorf("otadata %x", after[0xD000:0xD020])
	}
	if got := robot.commands(); len(got) != 8 || !strings.HasSuffix(got[5], " 1179648 WRITE") || !strings.HasSuffix(got[6], " 53248 WRITE") {
		t.Errorf("otadata is not written after what it starts:\n%s", strings.Join(got, "\n"))
	}
	if _, out, _ = tools("robot", "flash", "--dry-run", file, "--port", fakePort); !strings.Contains(out, "starts    ota_1: stack-chan 1.3.0") {
		t.Error(out)
	}
	robot.put("read_mac.fails", []byte("OSError: [Errno 25] Inappropriate ioctl for device\n"))
	if code, out, _ = tools("robot", "flash", "--dry-run", file, "--port", fakePort); code != 0 || !strings.Contains(out, "restart   the robot could not be restarted") {
		t.Errorf("exit %d %s", code, out)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

func TestFlashSettings(t *testing.T) {
	stackChan(t)
	dir := t.TempDir()
	fresh, file := filepath.Join(dir, "new.bin"), filepath.Join(dir, "nvs.bin")
	check(t, "robot",
		call{[]string{"nvs", fresh, "--new", "--set", "wifi/ssid=Home"}, 0, "1 items"},
		call{[]string{"flash", fresh, "--port", fakePort}, 1, "add --all"},
		call{[]string{"flash", fresh, "--port", fakePort, "--all"}, 0, "verified"},
		call{[]string{"flash", "--save", "--at", "nvs", file, "--port", fakePort}, 0, "16384 bytes of nvs, from 0x9000 on"},
		call{[]string{"flash", "--save", "--at", "nvs", file, "--port", fakePort}, 1, "already exists"},
		call{[]string{"nvs", file}, 0, "wifi/ssid=string:Home"},
		call{[]string{"flash", "--save", "--at", "fonts", file + "2", "--port", fakePort}, 1, "no partition fonts, but: nvs, otadata,"})
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Error("what holds passwords is for everybody")
	}
}

func TestFlashInterrupted(t *testing.T) {
	robot := stackChan(t)
	half := filepath.Join(robot.dir, "half")
	must.Succeed(t, syscall.Mkfifo(half, 0o600)) // testdata/esptool writes to this pipe in the middle of a write, and then waits
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = os.ReadFile(half)
		cancel()
	}()
	file := writeFile(t, "app.bin", filled("1.3.0", 250_000))
	_, err := command.Execute(ctx, commands(), []string{"robot", "flash", file, "--port", fakePort}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "interrupted: write the flash at 0x20000: you stopped it; ota_0 may be half written") ||
		strings.Contains(err.Error(), "context") {
		t.Fatal(err)
	}
	must.Succeed(t, os.Remove(half))
	check(t, "robot flash --port "+fakePort, call{[]string{file}, 0, "verified"},
		call{[]string{file, "--dry-run"}, 0, "starts    ota_0: stack-chan 1.3.0"})
}

// TestFlashInterruptedBeforeWriting checks that a robot does not stay in its loader if the user stops the
// command before anything is written.
func TestFlashInterruptedBeforeWriting(t *testing.T) {
	robot := stackChan(t)
	detecting := filepath.Join(robot.dir, "detecting")
	must.Succeed(t, syscall.Mkfifo(detecting, 0o600)) // testdata/esptool writes to this pipe while it identifies the robot, and then waits
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = os.ReadFile(detecting)
		cancel()
	}()
	file := writeFile(t, "app.bin", simrobot.Image("1.3.0", 0))
	_, err := command.Execute(ctx, commands(), []string{"robot", "flash", file, "--port", fakePort}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "interrupted: /dev/null: you stopped it") {
		t.Error(err)
	}
	if all := robot.commands(); len(all) != 2 || !strings.HasSuffix(all[1], "--after hard_reset --no-stub read_mac") {
		t.Errorf("the robot stays in its loader: %q", all)
	}
}

func TestFlashRefusesRobot(t *testing.T) {
	file := writeFile(t, "app.bin", simrobot.Image("1.3.0", 0))
	chip := func(name string) func(fakeRobot) { return func(r fakeRobot) { r.put("chip", []byte(name)) } }
	for want, change := range map[string]func(r fakeRobot){
		"flash is encrypted":                           func(r fakeRobot) { r.put("encrypted", nil) },
		"secure boot":                                  func(r fakeRobot) { r.put("secure-boot", nil) },
		"secure download mode":                         func(r fakeRobot) { r.put("secure-download", nil) },
		"the robot has esp32c61":                       chip("ESP32-C61"),
		"built for esp32s3, and the robot has esp32c3": chip("ESP32-C3"),
		"built for esp32s3, and the robot has esp32\n": chip("ESP32"),
		"encrypted, with a key that only its chip has": func(r fakeRobot) {
			r.put("chip", []byte("ESP32"))
			r.put("encrypted", nil)
		},
		"no partition table, or a damaged one": func(r fakeRobot) { r.put("flash", make([]byte, 4<<20)) },
		"needs 2752512 bytes of flash":         func(r fakeRobot) { r.put("flash", r.flash()[:2<<20]) },
	} {
		robot := stackChan(t)
		change(robot)
		before := robot.flash()
		code, out, errs := tools("robot", "flash", file, "--port", fakePort)
		if code != 1 || !strings.Contains(errs, want) || !bytes.Equal(robot.flash(), before) {
			t.Errorf("%s: exit %d %s%s", want, code, out, errs)
		}
		if all := robot.commands(); !strings.HasSuffix(all[len(all)-1], "--after hard_reset --no-stub read_mac") {
			t.Errorf("%s: the robot stays in its loader: %q", want, all)
		}
	}
}

// TestFlashErrorsHaveACure checks that an error of esptool is reported with advice. The texts in the
// column printed are real output of esptool.
func TestFlashErrorsHaveACure(t *testing.T) {
	file := writeFile(t, "app.bin", simrobot.Image("1.3.0", 9000))
	const half = "; ota_0 may be half written, and must be flashed again"
	for _, c := range []struct{ command, printed, want string }{
		{"flash_id", "...................................\n\nA fatal error occurred: Failed to connect to Espressif device: No serial data received.\n" +
			"For troubleshooting steps visit: https://docs.espressif.com/\n",
			"/dev/null: no robot responds: is this the right port, and does the cable have data lines? If so, bring it into its loader by hand (hold BOOT"},
		{"flash_id", "\nA fatal error occurred: Failed to connect to ESP32-S3: Wrong boot mode detected (0x8)! The chip needs to be in download mode.\n",
			"the robot starts its firmware instead of its loader: bring it"},
		{"flash_id", "\nA fatal error occurred: Could not open /dev/ttyACM0, the port is busy or doesn't exist.\n([Errno 11] Could not exclusively lock " +
			"port /dev/ttyACM0: [Errno 11] Resource temporarily unavailable)\n", "another program uses it: close that first"},
		{"flash_id", "Detecting chip type... \nA fatal error occurred: Unexpected chip ID value 20. Failed to autodetect chip type.\n" +
			"Probably it is unsupported by this version of esptool.\n",
			"esptool: Unexpected chip ID value 20. Failed to autodetect chip type. Probably"},
		{"flash_id", "Traceback (most recent call last):\n  File \"esptool\", line 37\nOSError: [Errno 25] Inappropriate ioctl for device\n",
			"/dev/null: esptool: OSError: [Errno 25] Inappropriate ioctl for device"},
		{"read_flash", "\nA fatal error occurred: Failed to read flash block (result was 010A0000: Version was invalid)\n",
			"read the flash at 0x8000: esptool: Failed to read flash block (result was 010A0000: Version was invalid) (if the cable is good, --baud 115200 may help"},
		{"write_flash", "Writing at 0x00028000... (22 %)\n\nA serial exception error occurred: Could not configure port: (5, 'Input/output error')\n",
			"the port has disappeared: the robot was unplugged, or has lost power" + half},
		{"write_flash", "Flash md5: 6d60b937d11c1c6827dc8926289da4ab\n\nA fatal error occurred: MD5 of file does not match data in flash!\n",
			"write the flash at 0x20000: the flash does not contain the written data: try another cable"},
	} {
		robot := stackChan(t)
		robot.put(c.command+".fails", []byte(c.printed))
		check(t, "robot flash --port "+fakePort, call{[]string{file}, 1, c.want})
	}
	robot := stackChan(t)
	robot.put("write_flash.53248.fails", []byte("\nA fatal error occurred: No serial data received.\n"))
	check(t, "robot flash --port "+fakePort, call{[]string{file, "--at", "ota_1", "--boot"}, 1,
		"otadata may be half written, and must be flashed again before the robot works: run the same command again. Written completely before: ota_1"})
}

func TestFlashWithoutESPTool(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	file := writeFile(t, "app.bin", simrobot.Image("1.3.0", 0))
	check(t, "robot flash --port "+fakePort, call{[]string{file}, 1, "`sudo apt install esptool`"})
}

// TestIdentify checks identify with output of esptool 4.7.0 and 5.6.0.
func TestIdentify(t *testing.T) {
	for _, c := range []struct {
		printed string
		want    robotFlash
	}{
		{"Serial port /dev/ttyACM0\nConnecting...\nDetecting chip type... ESP32-S3\nChip is ESP32-S3 (QFN56) (revision v0.2)\n" +
			"Device: 4018\nDetected flash size: 16MB\n", robotFlash{chip: 9, revision: 2, size: 16 << 20}},
		{"Detecting chip type... Unsupported detection protocol, switching and trying again...\nConnecting...\nDetecting chip type... ESP32\n" +
			"Chip is ESP32-D0WD-V3 (revision v3.1)\nDetected flash size: 512KB\n", robotFlash{revision: 301, bootLoader: 0x1000, size: 512 << 10}},
		{"Connected to ESP32-C6 on /dev/ttyACM0:\nChip type:          ESP32-C6FH4 (QFN32) (revision v0.1)\n\nFlash Memory Information:\n" +
			"Detected flash size: 4MB\n", robotFlash{chip: 13, revision: 1, size: 4 << 20}},
	} {
		got, err := identify(c.printed)
		if err != nil || got.chip != c.want.chip || got.revision != c.want.revision ||
			got.bootLoader != c.want.bootLoader || got.size != c.want.size {
			t.Errorf("%s: %+v %v", c.printed, got, err)
		}
	}
	for printed, want := range map[string]string{
		"": "its versions 4.7 and 5.6",
		"Detecting chip type... ESP32-S3\nChip is ESP32-S3 (revision v0.2)\nDetected flash size: Unknown\n": "is the cable sound?",
		"Detecting chip type... ESP8266\nChip is ESP8266EX (revision v0.2)\nDetected flash size: 4MB\n":     "the robot has esp8266",
	} {
		if _, err := identify(printed); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", printed, err)
		}
	}
}

// TestInstalledESPToolKnowsOurCommands checks that the installed esptool accepts the options of each
// command. No robot is at the port, so every command fails after esptool has tried to connect.
func TestInstalledESPToolKnowsOurCommands(t *testing.T) {
	program, err := findESPTool()
	if err != nil {
		t.Skip(err)
	}
	port, dir := silentTerminal(t), t.TempDir()
	t.Setenv("ESPTOOL_CFGFILE", writeFile(t, "esptool.cfg", []byte("[esptool]\nconnect_attempts = 1\n")))
	e := esptool{program: program, port: port, chip: "auto", baud: 460800, dir: dir}
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "write.bin"), make([]byte, 4096), 0o600))
	for _, c := range [][]string{
		{"flash_id"}, {"get_security_info"}, {"read_mem", "0x3FF5A000"}, {"read_mac"},
		{"read_flash", "32768", "3072", filepath.Join(dir, "read.bin")},
		{"write_flash", "131072", filepath.Join(dir, "write.bin")},
	} {
		printed, err := e.run(t.Context(), nil, "hard_reset", c[0], c[1:]...)
		if err == nil || !strings.Contains(printed, "Connecting...") { // esptool reports wrong options before it connects
			t.Errorf("%q: %v\n%s", c, err, printed)
		}
		e.chip = "esp32s3"
	}
}

// silentTerminal returns a pseudo terminal whose other end sends nothing.
func silentTerminal(t *testing.T) (name string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("this machine has no pseudo terminals (/dev/pts is not mounted): ", err)
	}
	t.Cleanup(func() { master.Close() })
	var number, unlocked uint32
	err = must.Value(master.SyscallConn())(t).Control(func(fd uintptr) {
		for request, value := range map[uintptr]*uint32{syscall.TIOCSPTLCK: &unlocked, syscall.TIOCGPTN: &number} {
			if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(unsafe.Pointer(value))); errno != 0 {
				t.Fatal(errno)
			}
		}
	})
	must.Succeed(t, err)
	return "/dev/pts/" + strconv.Itoa(int(number))
}

func TestESPToolProgress(t *testing.T) {
	var got []int
	o := &esptoolOutput{progress: func(percent int) { got = append(got, percent) }}
	for _, piece := range []string{"Changed.\n", "Writing at 0x00043400... (9", "6 %)", "\n1024 (33 %)\b\b\b\b\b\b\b\b\b\b\b",
		"\nWriting at 0x00044000 \u2501\u2501   98.3% 144.00kB/146.56kB [0s] \n", "Hash of data verified.\n"} {
		_, err := o.Write([]byte(piece))
		must.Succeed(t, err)
	}
	if !slices.Equal(got, []int{96, 33, 98, 98}) {
		t.Error(got)
	}
}

func TestSerialPorts(t *testing.T) {
	sys := t.TempDir()
	device := func(tty, dir string, files map[string]string) {
		usb := filepath.Join(sys, "devices", dir)
		class := filepath.Join(sys, "class/tty", tty)
		must.Succeed(t, os.MkdirAll(usb, 0o755))
		must.Succeed(t, os.MkdirAll(class, 0o755))
		for name, text := range files {
			must.Succeed(t, os.WriteFile(filepath.Join(sys, "devices", strings.SplitN(dir, "/", 2)[0], name), []byte(text+"\n"), 0o600))
		}
		must.Succeed(t, os.Symlink(usb, filepath.Join(class, "device")))
	}
	device("ttyACM0", "1-1/1-1:1.0", map[string]string{"idVendor": "303a", "manufacturer": "Espressif", "product": "USB JTAG\x1b[2J"})
	device("ttyUSB0", "1-2/1-2:1.0/ttyUSB0", map[string]string{"idVendor": "10c4", "product": strings.Repeat("CP2102N ", 20)})
	device("ttyS0", "serial8250", nil)
	want := []serialPort{{"/dev/ttyACM0", "Espressif USB JTAG[2J", true}, {"/dev/ttyUSB0", strings.Repeat("CP2102N ", 20)[:60], false}}
	if got := serialPorts(sys); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestFlashRefusesPortOrFile(t *testing.T) {
	good, bad := writeFile(t, "app.bin", simrobot.Image("1.3.0", 0)), writeFile(t, "bad.bin", []byte("<html>"))
	damaged := simrobot.Image("1.3.0", 2000)
	damaged[400] ^= 1
	cut := simrobot.Image("1.3.0", 2000)
	check(t, "robot flash", []call{
		{[]string{good, "--port", filepath.Join(t.TempDir(), "ttyACM0")}, 1, "there is no such port: is the robot plugged in?"},
		{[]string{good, "--port", good}, 1, "it is not a serial port"},
		{[]string{bad}, 1, "cannot be written to a robot"},
		{[]string{writeFile(t, "empty.bin", nil)}, 1, "the file is empty"},
		{[]string{writeFile(t, "damaged.bin", damaged)}, 1, "damaged.bin would not start: the image's checksum"},
		{[]string{writeFile(t, "cut.bin", cut[:1500])}, 1, "it was not copied completely"},
		{[]string{good, good}, 2, "but 2 arguments were given"},
		{[]string{good, "--baud", "1"}, 2, "--baud 1"},
		{[]string{"--save", good}, 2, "--save goes with --at"},
		{[]string{"--save", "--at", "nvs", good}, 1, "does not replace a copy"},
		{[]string{"--help"}, 0, ""},
	}...)
}

func TestChoosePort(t *testing.T) {
	robot, other := serialPort{name: "/dev/ttyACM0", robot: true}, serialPort{name: "/dev/ttyACM1", robot: true, device: "Espressif"}
	stick, adapter := serialPort{name: "/dev/ttyUSB0", device: "Silicon Labs CP2102N"}, serialPort{name: "/dev/ttyUSB1"}
	for _, c := range []struct {
		ports []serialPort
		named string
		want  serialPort
		err   string
	}{
		{nil, "", serialPort{}, "no robot is plugged in"},
		{[]serialPort{robot}, "", robot, ""},
		{[]serialPort{stick}, "", stick, ""},
		{[]serialPort{robot, stick}, "", robot, ""}, // a USB-to-serial bridge may be a Zigbee stick
		{[]serialPort{robot, stick}, "/dev/ttyUSB0", stick, ""},
		{[]serialPort{robot, other, stick}, "", serialPort{}, "one of: /dev/ttyACM0; /dev/ttyACM1 Espressif"},
		{[]serialPort{stick, adapter}, "", serialPort{}, "one of: /dev/ttyUSB0 Silicon Labs CP2102N; /dev/ttyUSB1"},
		{nil, "/dev/ttyS9", serialPort{name: "/dev/ttyS9"}, ""},
	} {
		got, err := choosePort(c.ports, c.named)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.HasSuffix(err.Error(), c.err) &&
			!strings.Contains(err.Error(), c.err) {
			t.Errorf("%v %q: %v %v", c.ports, c.named, got, err)
		}
	}
}

// bigAssets returns an asset file of more than 4096 bytes, which is the size of a sector.
func bigAssets() []byte {
	b := append(espimagetest.Assets("index.json", "{}"), make([]byte, 5000)...)
	binary.LittleEndian.PutUint32(b[8:], uint32(len(b)-12))
	return b
}

// plannedRobots returns the input of a plan for five robots: an ordinary robot, one without a valid
// partition table, one with firmware of another project, one with a flash of 32 MB, and one with a
// single partition for applications and no otadata.
func plannedRobots(t *testing.T) (robot, blank, foreign, big, single robotFlash) {
	t.Helper()
	table := must.Value(espimage.ParseTable(partitionTable()))(t)
	slot, _ := table.Named("ota_0")
	robot = robotFlash{chip: 9, revision: 2, size: 4 << 20, table: table, startPartition: slot, app: espimage.App{Project: "stack-chan"}}
	blank = robot
	blank.table, blank.startPartition, blank.app, blank.tableErr = nil, espimage.Partition{}, espimage.App{}, errors.New("there is no partition table")
	foreign = robot
	foreign.app.Project = "xiaozhi"
	big = robot
	big.size, big.table = 32<<20, slices.Clone(table)
	big.table[5].Offset = 16<<20 - 4096
	single = robot
	single.table = espimage.Table{table[0], table[3]}
	return robot, blank, foreign, big, single
}

// planText returns the writes of a plan and its first note as text. If err is not nil, it returns the
// text of err.
func planText(p flashPlan, err error) string {
	if err != nil {
		return err.Error()
	}
	var writes []string
	for _, w := range p.writes {
		writes = append(writes, w.name+" 0x"+strconv.FormatInt(w.offset, 16))
	}
	text := strings.Join(writes, ", ")
	if len(p.notes) > 0 {
		text += "; " + p.notes[0]
	}
	return text
}

func TestFlashPlan(t *testing.T) {
	robot, blank, foreign, big, single := plannedRobots(t)
	app := simrobot.Image("1.3.0", 0)
	large := simrobot.Image("1.3.0", 1<<20)
	whole := factoryFlash(app)[:0x30000]
	broken := bytes.Clone(whole)
	broken[0x20000+100] ^= 1
	loader := factoryFlash(nil)[:0x400]
	assets := espimagetest.Assets("index.json", "{}")
	for _, c := range []struct {
		name  string
		robot robotFlash
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
		{"app", robot, app, flashFlags{at: "nvs"}, "add --all"},
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
		{"whole", robot, whole, flashFlags{}, "add --all"},
		{"whole", robot, whole, flashFlags{all: true}, "the whole flash 0x0; nvs is replaced, too"},
		{"whole", blank, whole, flashFlags{all: true}, "the whole flash 0x0; nvs is replaced, too"},
		{"whole", robot, whole, flashFlags{all: true, at: "0"}, "the whole flash 0x0; nvs is replaced, too"},
		{"whole", robot, whole, flashFlags{all: true, at: "ota_0"}, "belongs at 0"},
		{"whole", robot, broken, flashFlags{all: true}, "would not start: in the partition ota_0"},
		{"assets", robot, assets, flashFlags{}, "assets 0x220000"},
		{"assets", robot, assets, flashFlags{at: "ota_1"}, "not in ota_1"},
		{"assets", big, assets, flashFlags{}, "assets 0xfff000"},
		{"assets", big, bigAssets(), flashFlags{}, "beyond the first 16 MB"},
		{"assets", single, assets, flashFlags{}, "no partition assets"},
		{"table", robot, partitionTable(), flashFlags{}, "add --all"},
		{"table", robot, partitionTable(), flashFlags{all: true}, "the partition table 0x8000"},
		{"table", robot, partitionTable(), flashFlags{at: "ota_1"}, "belongs at 0x8000"},
		{"loader", robot, loader, flashFlags{}, "add --all"},
		{"loader", robot, loader, flashFlags{all: true}, "the boot loader 0x0"},
		{"loader", robot, loader, flashFlags{at: "ota_1"}, "a boot loader belongs at 0x0"},
	} {
		file, err := readFlashFile(writeFile(t, c.name, c.file))
		if err != nil {
			t.Fatal(c.name, err)
		}
		p, err := c.flags.plan(c.robot, file)
		text := planText(p, err)
		isError := !strings.Contains(c.want, " 0x") || strings.HasPrefix(c.want, "there is") || strings.Contains(c.want, "belongs at 0x")
		if !strings.Contains(text, c.want) || err == nil && !strings.HasPrefix(text, c.want) || isError != (err != nil) {
			t.Errorf("%s %+v: %s", c.name, c.flags, text)
		}
	}
}
