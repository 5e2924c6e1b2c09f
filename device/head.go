package device

// How far a Stack-chan's head goes, in degrees.
const (
	// MaxHeadYaw is the firmware's own limit to either side.
	MaxHeadYaw = 128
	// AssumedHeadYaw is how far a head turns whose tool lists no range.
	AssumedHeadYaw = 90
	// MinHeadPitch and MaxHeadPitch are how far a head tilts. Servos that are driven
	// into their stops break; the makers advise to stay within this.
	MinHeadPitch = 5
	MaxHeadPitch = 85
	// FirmwareHeadPitch is the firmware's limit; Tool.Fit sends MaxHeadPitch at
	// most.
	FirmwareHeadPitch = 90
	// KeepHeadAxis leaves an axis as it is. The firmware lists it as the least
	// value.
	KeepHeadAxis = -9999
)
