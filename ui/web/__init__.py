"""The app in the browser: Streamlit pages over the same records as the command line."""
