#!/bin/bash
# transcribe everything
for f in wav/*.wav; do whisper "$f" --model medium --output_format all; done
