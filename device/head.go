package device

// Range of a Stack-chan's head, in degrees.
const (
	// MaxHeadYaw is the firmware's limit to either side.
	MaxHeadYaw = 128
	// AssumedHeadYaw is the limit assumed for a head whose tool lists no range.
	AssumedHeadYaw = 90
	// MinHeadPitch and MaxHeadPitch are the range that the makers advise: servos that
	// are driven into their stops break.
	MinHeadPitch = 5
	MaxHeadPitch = 85
	// FirmwareHeadPitch is the firmware's limit; Tool.Fit clamps to MaxHeadPitch.
	FirmwareHeadPitch = 90
	// KeepHeadAxis leaves an axis as it is. The firmware lists it as the minimum.
	KeepHeadAxis = -9999
)
