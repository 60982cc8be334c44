"""The roofline as text and as SVG."""
