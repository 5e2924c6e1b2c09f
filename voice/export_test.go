package voice

// LibraryChoosesRate leaves the rate to libopus, as the firmware does.
func (e *Encoder) LibraryChoosesRate() error { return e.opus.set(bitrate, libraryChooses) }
